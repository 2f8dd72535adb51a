"""The work of the measurement on FastAPI and the sqlite3 of Python: models for what comes in and goes out, uvicorn with
uvloop and httptools, one worker. It serves the same file as the service, with the same tables, and commits each request
by itself. The calls stand in `async def`, because handing each to a thread costs more than it takes.
Arguments: the database, and `synchronous`."""

import hashlib
import json
import socket
import sqlite3
import sys
import time
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Response
from pydantic import BaseModel

path, synchronous = sys.argv[1:]
database = sqlite3.connect(path, isolation_level=None)
for pragma in ("journal_mode = wal", f"synchronous = {synchronous}", "foreign_keys = on"):
    database.execute(f"pragma {pragma}")
listener = socket.create_server(("127.0.0.1", 0), backlog=2048)


@asynccontextmanager
async def announce(_):
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    yield


app = FastAPI(lifespan=announce)


def row_of(statement: str, authorization: str):
    token = authorization.removeprefix("Bearer ")
    row = database.execute(statement, (hashlib.sha256(token.encode()).digest(),)).fetchone()
    if row is None or row[1] <= time.time() * 1000:
        raise HTTPException(401)
    return row


async def caller(authorization: Annotated[str, Header()]) -> int:
    return row_of("select user_id, expires_at from tokens where token_sha256 = ?", authorization)[0]


Caller = Annotated[int, Depends(caller)]


class Balance(BaseModel):
    userId: str
    balance: int


class Profile(BaseModel):
    userId: str
    nickname: str
    gender: str
    signature: str
    phoneNumber: str | None


class Draft(BaseModel):
    localRecordId: str
    jsonData: dict[str, Any]
    questionType: str | None = None
    question: str | None = None
    timestamp: int | None = None


class Casting(Draft):
    userId: str
    createdAt: datetime
    updatedAt: datetime


class Page(BaseModel):
    page: int = 1
    size: int = 20


class Castings(BaseModel):
    items: list[Casting]
    total: int


@app.get("/coin/balance")
async def balance(authorization: Annotated[str, Header()]) -> Balance:
    user, _, coins = row_of(
        "select t.user_id, t.expires_at, b.balance from tokens t left join balances b on b.user_id = t.user_id "
        "and b.asset = 'coin' where t.token_sha256 = ?", authorization)
    return Balance(userId=str(user), balance=coins)


@app.get("/user/profile")
async def profile(authorization: Annotated[str, Header()]) -> Profile:
    user, _, nickname, gender, signature, phone_number = row_of(
        "select t.user_id, t.expires_at, u.nickname, u.gender, u.signature, u.phone_number "
        "from tokens t join users u on u.id = t.user_id where t.token_sha256 = ?", authorization)
    return Profile(userId=str(user), nickname=nickname, gender=gender, signature=signature, phoneNumber=phone_number)


@app.post("/divination-history/save", status_code=201)
async def save(user: Caller, draft: Draft) -> Casting:
    now = time.time_ns() // 1_000_000
    database.execute(
        "insert into history (user_id, sequence, local_record_id, question_type, question, json_data, client_timestamp, "
        "created_at, updated_at) values (?1, (select coalesce(max(sequence), 0) + 1 from history where user_id = ?1), "
        "?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        (user, draft.localRecordId, draft.questionType, draft.question, json.dumps(draft.jsonData, ensure_ascii=False),
         str(draft.timestamp), now))
    at = datetime.fromtimestamp(now / 1000, timezone.utc)
    return Casting(**draft.__dict__, userId=str(user), createdAt=at, updatedAt=at)


@app.post("/divination-history/get")
async def list_castings(user: Caller, page: Page) -> Castings:
    rows = database.execute(
        "select local_record_id, question_type, question, json_data, client_timestamp, created_at, updated_at "
        "from history where user_id = ? order by sequence desc limit ? offset ?",
        (user, page.size, (page.page - 1) * page.size))
    items = [
        Casting.model_construct(
            userId=str(user), localRecordId=record, questionType=kind, question=question, jsonData=json.loads(data),
            timestamp=int(at), createdAt=datetime.fromtimestamp(created / 1000, timezone.utc),
            updatedAt=datetime.fromtimestamp(updated / 1000, timezone.utc))
        for record, kind, question, data, at, created, updated in rows
    ]
    (total,) = database.execute(
        "select count(*) from history where user_id = ?", (user,)).fetchone()
    return Castings.model_construct(items=items, total=total)


@app.post("/coin/consume")
async def consume(user: Caller, idempotency_key: Annotated[str | None, Header()] = None) -> Response:
    database.execute("begin immediate")
    try:
        answer = consume_once(user, idempotency_key)
        database.execute("commit")
    except BaseException:
        database.execute("rollback")
        raise
    return Response(answer, media_type="application/json")


def consume_once(user: int, key: str | None) -> bytes:
    name = (f"user:{user}", "POST /coin/consume", key)
    find = "select body from idempotency_keys where caller = ? and route = ? and key = ?"
    if key and (before := database.execute(find, name).fetchone()):
        return before[0]
    now = time.time_ns() // 1_000_000
    coins, sequence = database.execute(
        "update balances set balance = balance - 1, last_sequence = last_sequence + 1 where user_id = ? "
        "and asset = 'coin' and balance >= 1 returning balance, last_sequence", (user,)).fetchone()
    database.execute(
        "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) "
        "values (?, 'coin', ?, -1, ?, 'consume', ?)", (user, sequence, coins, now))
    answer = json.dumps({"consumed": 1, "balance": coins}).encode()
    if key:
        database.execute(
            "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) "
            "values (?, ?, ?, ?, 200, ?, ?)", (*name, hashlib.sha256(name[1].encode()).digest(), answer, now))
    return answer


server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, loop="uvloop", http="httptools"))
server.run(sockets=[listener])
