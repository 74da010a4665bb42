"""The memory of a small product team (CrewAI's unified Memory, offline, standalone and for an agent).

Memory analyses with an LLM (here a scripted one), embeds (here a tiny hashing function), and keeps
the records in a StorageBackend.
"""
import hashlib
import math
import os
import re
import tempfile
from datetime import datetime, timedelta

os.environ.update(CREWAI_TRACING_ENABLED="false", CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true",
                  CREWAI_STORAGE_DIR=tempfile.mkdtemp())

from crewai import Agent, BaseLLM, Crew, Memory, Task
from crewai.memory.analyze import ConsolidationPlan, ExtractedMemories, MemoryAnalysis, QueryAnalysis

from crewai.memory.storage.lancedb_storage import LanceDBStorage

storage = LanceDBStorage(path=tempfile.mkdtemp())  # <- here


def embed(texts: list[str]) -> list[list[float]]:
    """Words hashed into 256 dimensions, normalized."""
    vectors = []
    for text in texts:
        vector = [0.0] * 256
        for word in re.findall(r"[a-z0-9]+", text.lower()):
            vector[int(hashlib.md5(word.encode()).hexdigest(), 16) % 256] += 1.0
        norm = math.sqrt(sum(x * x for x in vector)) or 1.0
        vectors.append([x / norm for x in vector])
    return vectors


class TeamLLM(BaseLLM):
    """Answers each of Memory's questions by its response model; as an agent it answers from its prompt."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages, tools=None, callbacks=None, available_functions=None, from_task=None, from_agent=None,
             response_model=None):
        prompt = messages if isinstance(messages, str) else "\n".join(str(m.get("content")) for m in messages)
        if response_model is MemoryAnalysis:
            on_money = "budget" in prompt.split("Existing")[0].lower()
            scope, category = ("/finance", "money") if on_money else ("/misc", "note")
            return MemoryAnalysis(suggested_scope=scope, categories=[category], importance=0.7)
        if response_model is QueryAnalysis:
            return QueryAnalysis(recall_queries=["staging port"], complexity="simple")
        if response_model is ConsolidationPlan:
            return ConsolidationPlan(actions=[], insert_new=False, insert_reason="already known")
        if response_model is ExtractedMemories:
            return ExtractedMemories(memories=["The newsletter goes out on Thursdays."])
        known = re.search(r"staging runs on port \d+", prompt)
        return f"Thought: I now know the answer.\nFinal Answer: {known.group(0) if known else 'I do not know'}."


llm = TeamLLM(model="scripted")
memory = Memory(storage=storage, llm=llm, embedder=embed)


def contents(matches) -> list[str]:
    return [m.record.content for m in matches]


# Remember: with everything given, nothing is left to the LLM.
assert memory.recall("anything", depth="shallow") == [] and memory.list_records() == []
database = memory.remember("The user database is PostgreSQL 16.", scope="/eng/backend", categories=["decision"],
                           importance=0.9, metadata={"by": "olga"}, source="meeting")
port = memory.remember("Our staging runs on port 8080.", scope="/eng/backend", categories=["fact"], importance=0.5)
memory.remember("The design system uses Inter as its font.", scope="/eng/frontend", categories=["decision"], importance=0.4)
memory.remember("Customer Brandt renews the contract in autumn.", scope="/sales", categories=["fact"], importance=0.8)
# The LLM infers scope and categories where they are missing.
budget = memory.remember("The budget for hardware is 4000 euros.")
assert budget.scope == "/finance" and budget.categories == ["money"]
# What is all but the same as a record is consolidated (the LLM decides: not stored again).
again = memory.remember("The user database is PostgreSQL 16.", scope="/eng/backend", categories=["decision"], importance=0.9)
assert again.id == database.id and len(memory.list_records()) == 5

# Recall: the clearly best match is among the first three; scope and categories filter.
assert database.content in contents(memory.recall("Which user database, PostgreSQL?", depth="shallow"))[:3]
assert port.content in contents(memory.recall("staging port", limit=3))
frontend = memory.recall("PostgreSQL user database", scope="/eng/frontend", depth="shallow")
assert contents(frontend) == ["The design system uses Inter as its font."]
decisions = memory.recall("database font contract", categories=["decision"], depth="shallow")
assert len(decisions) == 2 and all("decision" in m.record.categories for m in decisions)
assert len(memory.recall("the", limit=2, depth="shallow")) == 2
# A long question is distilled by the LLM first.
long = "We have an incident and the new colleague needs to reach our second environment. " * 4
assert port.content in contents(memory.recall(long))[:3]
hit = next(m for m in memory.recall("user database PostgreSQL 16", depth="shallow") if m.record.id == database.id)
assert hit.record.metadata["by"] == "olga" and hit.record.source == "meeting" and hit.record.importance == 0.9
assert 0 < hit.score <= 1 and "semantic" in hit.match_reasons

# A private record is only for its source.
memory.remember("Olga is looking for another flat.", scope="/people", categories=["note"], importance=0.3,
                source="olga", private=True)
assert not any("flat" in c for c in contents(memory.recall("Olga another flat", depth="shallow")))
assert any("flat" in c for c in contents(memory.recall("Olga another flat", depth="shallow", source="olga"))[:3])

# Explore: scopes, categories, lists (newest first, by pages).
assert set(memory.list_scopes("/")) == {"/eng", "/sales", "/finance", "/people"}
assert set(memory.list_scopes("/eng")) == {"/eng/backend", "/eng/frontend"}
assert memory.list_categories() == {"decision": 2, "fact": 2, "money": 1, "note": 1}
assert memory.list_categories("/eng") == {"decision": 2, "fact": 1}
info = memory.info("/eng")
assert info.record_count == 3 and set(info.child_scopes) == {"/eng/backend", "/eng/frontend"}
assert info.oldest_record <= info.newest_record and "/eng/backend (2 records)" in memory.tree()
records = memory.list_records()
assert len(records) == 6 and records[0].content.startswith("Olga")
assert [r.id for r in memory.list_records(limit=2) + memory.list_records(limit=4, offset=2)] == [r.id for r in records]
assert {r.scope for r in memory.list_records("/eng")} == {"/eng/backend", "/eng/frontend"}

# Update a record: the new content is embedded again, the rest stays.
memory.update(port.id, content="Our staging runs on port 9090.", metadata={"changed": True})
updated = next(r for r in memory.list_records("/eng/backend") if r.id == port.id)
assert "9090" in updated.content and updated.metadata == {"changed": True} and updated.categories == ["fact"]
assert updated.created_at == port.created_at and len(memory.list_records()) == 6

# Views: one scope for an agent, a read-only slice of several, several at once in the background.
backend = memory.scope("/eng/backend")
backend.remember("Backups run at 3 in the morning.", scope="/ops", categories=["fact"], importance=0.5)
assert any("Backups" in c for c in contents(backend.recall("backups morning", depth="shallow"))[:3])
assert not any("Brandt" in c for c in contents(backend.recall("customer Brandt contract", depth="shallow")))
view = memory.slice(["/sales", "/finance"], read_only=True)
assert {m.record.scope for m in view.recall("budget hardware customer contract", depth="shallow")} == {"/sales", "/finance"}
office = ["Lunch is at noon.", "The plants are watered on Monday."]
memory.remember_many(office, scope="/office", categories=["note"], importance=0.2)
assert any("plants" in c for c in contents(memory.recall("plants watered Monday", depth="shallow"))[:3])

# A crew's agent recalls before its task, and the crew stores the result.
agent = Agent(role="Operator", goal="Answer questions", backstory="Knows the team.", llm=llm)
task = Task(description="On which port does our staging run?", expected_output="one sentence", agent=agent)
result = Crew(agents=[agent], tasks=[task], memory=memory, tracing=False).kickoff()
assert "staging runs on port 9090" in result.raw, result.raw
memory.drain_writes()
assert any("newsletter" in r.content for r in memory.list_records())

# Forget: by id, by scope, by category, by age, by metadata; then everything.
assert memory.forget(record_ids=[budget.id]) == 1 and memory.forget(record_ids=[budget.id]) == 0
assert memory.forget(scope="/office") == 2 and memory.list_records("/office") == []
assert memory.forget(older_than=datetime.utcnow() - timedelta(days=1)) == 0
assert memory.forget(metadata_filter={"by": "olga"}) == 1
assert memory.forget(scope="/eng", categories=["decision"]) == 1
assert "Our staging runs on port 9090." in [r.content for r in memory.list_records("/eng/backend")]
memory.reset(scope="/sales")
assert memory.list_records("/sales") == [] and len(memory.list_records()) > 0
memory.reset()
assert memory.list_records() == [] and memory.info("/").record_count == 0
memory.close()
print("ok")
