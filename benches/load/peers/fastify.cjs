// The work of the measurement on Fastify and better-sqlite3, as their documentation advises: schemas for what comes in
// and goes out, prepared statements, one process. It serves the same file as the service, with the same tables, and
// commits each request by itself. Arguments: the database, and `synchronous`.
const { createHash } = require('node:crypto');
const Database = require('better-sqlite3');
const fastify = require('fastify')({ logger: false });

const [, , path, synchronous] = process.argv;
const database = new Database(path);
database.pragma('journal_mode = wal');
database.pragma(`synchronous = ${synchronous}`);
database.pragma('foreign_keys = on');

const findBalance = database.prepare(
  `select t.user_id, t.expires_at, b.balance from tokens t left join balances b on b.user_id = t.user_id
   and b.asset = 'coin' where t.token_sha256 = ?`);
const findProfile = database.prepare(
  `select t.user_id, t.expires_at, u.phone_number, u.nickname, u.gender, u.signature
   from tokens t join users u on u.id = t.user_id where t.token_sha256 = ?`);
const findUser = database.prepare('select user_id, expires_at from tokens where token_sha256 = ?');
const insertCasting = database.prepare(
  `insert into history (user_id, sequence, local_record_id, question_type, question, json_data, client_timestamp,
   created_at, updated_at) values (@user, (select coalesce(max(sequence), 0) + 1 from history where user_id = @user),
   @localRecordId, @questionType, @question, @jsonData, @timestamp, @now, @now)`);
const listCastings = database.prepare(
  `select local_record_id, question_type, question, json_data, client_timestamp, created_at, updated_at from history
   where user_id = ? order by sequence desc limit ? offset ?`);
const countCastings = database.prepare('select count(*) from history where user_id = ?').pluck();
const findKey = database.prepare(
  "select body from idempotency_keys where caller = ? and route = 'POST /coin/consume' and key = ?").pluck();
const insertKey = database.prepare(
  `insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at)
   values (?, 'POST /coin/consume', ?, ?, 200, ?, ?)`);
const takeCoin = database.prepare(
  `update balances set balance = balance - 1, last_sequence = last_sequence + 1
   where user_id = ? and asset = 'coin' and balance >= 1 returning balance, last_sequence`);
const insertEntry = database.prepare(
  `insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at)
   values (?, 'coin', ?, -1, ?, 'consume', ?)`);
const consume = database.transaction((user, key) => {
  const caller = `user:${user}`;
  const before = key && findKey.get(caller, key);
  if (before) return before;
  const now = Date.now();
  const { balance, last_sequence } = takeCoin.get(user);
  insertEntry.run(user, last_sequence, balance, now);
  const answer = JSON.stringify({ consumed: 1, balance });
  if (key) insertKey.run(caller, key, sha256('POST /coin/consume'), Buffer.from(answer), now);
  return answer;
});

const sha256 = (text) => createHash('sha256').update(text).digest();

function authenticate(request, statement) {
  const token = (request.headers.authorization || '').slice('Bearer '.length);
  const row = statement.get(sha256(token));
  if (row && row.expires_at > Date.now()) return row;
  throw Object.assign(new Error('unauthenticated'), { statusCode: 401 });
}

const string = { type: 'string' };
const integer = { type: 'integer' };
const object = (properties) => ({ type: 'object', properties });
const casting = object({
  userId: string, localRecordId: string, questionType: string, question: string,
  jsonData: { type: 'object', additionalProperties: true }, timestamp: integer, createdAt: string, updatedAt: string,
});
const castingBody = { ...casting, required: ['localRecordId', 'jsonData'] };

fastify.get('/coin/balance', { schema: { response: { 200: object({ userId: string, balance: integer }) } } },
  async (request) => {
    const { user_id, balance } = authenticate(request, findBalance);
    return { userId: String(user_id), balance };
  });

const profile = object({ userId: string, nickname: string, gender: string, signature: string, phoneNumber: string });
fastify.get('/user/profile', { schema: { response: { 200: profile } } }, async (request) => {
  const row = authenticate(request, findProfile);
  const { nickname, gender, signature, phone_number } = row;
  return { userId: String(row.user_id), nickname, gender, signature, phoneNumber: phone_number };
});

fastify.post('/divination-history/save', { schema: { body: castingBody, response: { 201: casting } } },
  async (request, reply) => {
    const { user_id: user } = authenticate(request, findUser);
    const { localRecordId, questionType, question, jsonData, timestamp } = request.body;
    const now = Date.now();
    insertCasting.run({
      user, localRecordId, questionType, question, jsonData: JSON.stringify(jsonData), timestamp: String(timestamp), now,
    });
    const at = new Date(now).toISOString();
    reply.code(201);
    return { ...request.body, userId: String(user), createdAt: at, updatedAt: at };
  });

const page = { body: object({ page: integer, size: integer }),
  response: { 200: object({ items: { type: 'array', items: casting }, total: integer }) } };
fastify.post('/divination-history/get', { schema: page }, async (request) => {
  const { user_id: user } = authenticate(request, findUser);
  const { page: number, size } = request.body;
  const items = listCastings.all(user, size, (number - 1) * size).map((row) => ({
    userId: String(user), localRecordId: row.local_record_id, questionType: row.question_type, question: row.question,
    jsonData: JSON.parse(row.json_data), timestamp: Number(row.client_timestamp),
    createdAt: new Date(row.created_at).toISOString(), updatedAt: new Date(row.updated_at).toISOString(),
  }));
  return { items, total: countCastings.get(user) };
});

fastify.post('/coin/consume', async (request, reply) => {
  const { user_id: user } = authenticate(request, findUser);
  reply.type('application/json');
  return consume.immediate(user, request.headers['idempotency-key']);
});

fastify.listen({ host: '127.0.0.1', port: 0 }).then((address) => console.error(`listening on ${address}`));
process.on('SIGTERM', () => fastify.close().then(() => process.exit(0)));
