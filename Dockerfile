# An image that serves one data folder: docs/server.md. Dependencies have the tested versions of constraints.txt.
FROM python:3.12-slim AS built
COPY . /src
RUN python -m venv /opt/mindstream && /opt/mindstream/bin/pip install --no-cache-dir -c /src/constraints.txt "/src[server,documents]"

FROM python:3.12-slim
COPY --from=built /opt/mindstream /opt/mindstream
RUN useradd --system --create-home mindstream && mkdir /data && chown mindstream /data
USER mindstream
VOLUME /data
EXPOSE 8377
ENV PATH=/opt/mindstream/bin:$PATH
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8377/healthz')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["mindstream", "serve", "--host", "0.0.0.0", "--data", "/data"]
