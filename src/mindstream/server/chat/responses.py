from fastapi import FastAPI

from mindstream.service.operations.house import House


def add_responses(api: FastAPI, house: House) -> None: ...
