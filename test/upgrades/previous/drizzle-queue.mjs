// @ts-nocheck: built, see README.md
// src/errors.ts
var QueueError = class extends Error {
  name = "QueueError";
};
function describeIssues(issues) {
  return issues.map(({ path, message }) => path === "" ? message : `${path}: ${message}`).join("; ");
}
var InvalidPayloadError = class extends QueueError {
  constructor(kind, issues) {
    super(`The payload of '${kind}' is invalid: ${describeIssues(issues)}`);
    this.kind = kind;
    this.issues = issues;
  }
  name = "InvalidPayloadError";
};
var InvalidOutputError = class extends QueueError {
  constructor(kind, issues) {
    super(`The output of '${kind}' is invalid: ${describeIssues(issues)}`);
    this.kind = kind;
    this.issues = issues;
  }
  name = "InvalidOutputError";
};
var UnknownKindError = class extends QueueError {
  name = "UnknownKindError";
};
var JobTimeoutError = class extends QueueError {
  constructor(kind, jobId, timeoutMs) {
    super(`Job ${jobId} ('${kind}') took longer than its timeoutMs of ${timeoutMs} ms`);
    this.kind = kind;
    this.jobId = jobId;
    this.timeoutMs = timeoutMs;
  }
  name = "JobTimeoutError";
};
var LeaseLostError = class extends QueueError {
  constructor(kind, jobId, why = "another worker has claimed it, or it is already settled") {
    super(`Job ${jobId} ('${kind}') is no longer held by this worker: ${why}`);
    this.kind = kind;
    this.jobId = jobId;
  }
  name = "LeaseLostError";
};
var NonRetryableError = class extends QueueError {
  name = "NonRetryableError";
};
var WorkerLostError = class extends QueueError {
  constructor(kind, jobId, maxAttempts) {
    super(
      `Job ${jobId} ('${kind}') was claimed ${maxAttempts} times (its maxAttempts), and the last worker that held it died or lost its connection before it could say how the attempt ended`
    );
    this.kind = kind;
    this.jobId = jobId;
    this.maxAttempts = maxAttempts;
  }
  name = "WorkerLostError";
};
var MissingMigrationError = class extends QueueError {
  name = "MissingMigrationError";
  constructor(what, options) {
    super(
      `${what}. Run \`drizzle-kit generate && drizzle-kit migrate\` (your Drizzle schema must contain \`export * from 'drizzle-queue/schema'\`)`,
      options
    );
  }
};
var UnsupportedPostgresError = class extends QueueError {
  constructor(serverVersion) {
    super(`drizzle-queue needs PostgreSQL 14 or newer; this server is ${serverVersion}`);
    this.serverVersion = serverVersion;
  }
  name = "UnsupportedPostgresError";
};

// src/job/backoff.ts
function exponentialBackoff(options = {}) {
  const { initialMs = 1e3, maxMs = 36e5, factor = 2, random = Math.random } = options;
  if (!(initialMs > 0 && Number.isFinite(initialMs))) {
    throw new RangeError(`exponentialBackoff: initialMs must be a number above 0, got ${initialMs}`);
  }
  if (!(maxMs >= initialMs && Number.isFinite(maxMs))) {
    throw new RangeError(`exponentialBackoff: maxMs must be a number of at least initialMs, got ${maxMs}`);
  }
  if (!(factor >= 1 && Number.isFinite(factor))) {
    throw new RangeError(`exponentialBackoff: factor must be a number of at least 1, got ${factor}`);
  }
  return (attempt) => Math.round(random() * Math.min(maxMs, initialMs * factor ** (attempt - 1)));
}
function fixedBackoff(delayMs) {
  if (!(delayMs >= 0 && Number.isFinite(delayMs))) {
    throw new RangeError(`fixedBackoff: delayMs must be a number of at least 0, got ${delayMs}`);
  }
  return () => delayMs;
}

// src/job/stored-json.ts
var MAX_DEPTH = 1e3;
var UnstorableValueError = class extends TypeError {
  constructor(issue) {
    super(issue.message);
    this.issue = issue;
  }
};
function toStoredJson(value) {
  if (isPlainJson(value, [])) {
    const json = JSON.stringify(value);
    if (!json.includes("\\u")) return json;
  }
  check(value, [], /* @__PURE__ */ new Set());
  return JSON.stringify(value);
}
function isPlainJson(value, ancestors) {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return typeof value === "string" || typeof value === "boolean";
  if (value === null) return true;
  if (!isPlain(value) || ancestors.length >= MAX_DEPTH || ancestors.includes(value)) return false;
  ancestors.push(value);
  if (Array.isArray(value)) {
    for (let index3 = 0; index3 < value.length; index3++)
      if (!isPlainJson(value[index3], ancestors)) return false;
  } else {
    const properties = value;
    for (const key in properties) {
      const item = properties[key];
      if (item !== void 0 && !isPlainJson(item, ancestors)) return false;
    }
  }
  ancestors.pop();
  return true;
}
function check(value, path, ancestors) {
  const json = typeof value === "object" && value !== null ? asJson(value, path) : value;
  switch (typeof json) {
    case "string":
      checkText(json, path);
      return;
    case "number":
      if (!Number.isFinite(json)) refuse(`${json} is not a JSON number (it would be stored as null)`, path);
      return;
    case "boolean":
      return;
    case "object":
      if (json !== null) checkObject(json, path, ancestors);
      return;
    case "bigint":
      refuse("a BigInt is not JSON; send it as text", path);
      return;
    default:
      refuse(`a value of type ${typeof json} is not JSON`, path);
  }
}
function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === Array.prototype) && !("toJSON" in value);
}
function asJson(value, path) {
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    refuse("an invalid Date (it would be stored as null)", path);
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    refuse("binary data is not JSON; send it as base64 text, or store it and send its key", path);
  }
  const json = hasToJson(value) ? value.toJSON(lastOf(path)) : value;
  return [Number, String, Boolean, BigInt].some((boxed) => json instanceof boxed) ? json?.valueOf() : json;
}
var EMPTY_AS_JSON = [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error];
function checkObject(value, path, ancestors) {
  if (ancestors.has(value)) refuse("the value contains itself", path);
  if (path.length >= MAX_DEPTH) refuse(`nested deeper than ${MAX_DEPTH} levels`, path.slice(0, 3));
  const empty = EMPTY_AS_JSON.find((type) => value instanceof type);
  if (empty !== void 0) {
    refuse(`a ${empty.name} would be stored as {}; send what it holds as an array or a plain object`, path);
  }
  ancestors.add(value);
  if (Array.isArray(value)) {
    for (const [index3, item] of value.entries()) {
      if (item === void 0) refuse("undefined in an array would be stored as null", [...path, index3]);
      path.push(index3);
      check(item, path, ancestors);
      path.pop();
    }
  } else {
    for (const [key, item] of Object.entries(value)) {
      if (item === void 0) continue;
      checkText(key, path);
      path.push(key);
      check(item, path, ancestors);
      path.pop();
    }
  }
  ancestors.delete(value);
}
function hasToJson(value) {
  return "toJSON" in value && typeof value.toJSON === "function";
}
function lastOf(path) {
  return String(path.at(-1) ?? "");
}
var HALF_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
function checkText(text4, path) {
  if (text4.includes("\0")) refuse("contains a NUL character (\\u0000), which Postgres cannot keep", path);
  if (HALF_SURROGATE.test(text4)) {
    refuse("contains half of a surrogate pair, which is not Unicode text", path);
  }
}
function refuse(message, path) {
  throw new UnstorableValueError({ message, path: formatPath(path) });
}
function formatPath(path) {
  return path.map((key, index3) => typeof key === "number" ? `[${key}]` : `${index3 === 0 ? "" : "."}${String(key)}`).join("");
}

// src/job/limits.ts
var MAX_PRIORITY = 9;
var MAX_ATTEMPTS = 1e4;
var MAX_DELAY_MS = 100 * 365.25 * 24 * 36e5;
var MAX_TIMER_MS = 2 ** 31 - 1;
var MAX_NAME_BYTES = 200;
var MAX_UNIQUE_KEY_BYTES = 2e3;
var EARLIEST = Date.parse("0001-01-01T00:00:00Z");
var LATEST = Date.parse("9999-12-31T00:00:00Z");
function checkInteger(what, value, min, max) {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${what} must be a whole number from ${min} to ${max}, got ${show(value)}`);
  }
  return value;
}
function checkDurationMs(what, value, minMs = 0, maxMs = MAX_DELAY_MS) {
  if (typeof value !== "number" || !(value >= minMs && value <= maxMs)) {
    throw new RangeError(
      `${what} must be a number of milliseconds from ${minMs} to ${maxMs}, got ${show(value)}`
    );
  }
  return Math.round(value);
}
function checkDate(what, value) {
  const time = value instanceof Date ? value.getTime() : Number.NaN;
  if (!(time >= EARLIEST && time <= LATEST)) {
    throw new RangeError(`${what} must be a valid Date between the years 1 and 9999, got ${show(value)}`);
  }
  return value;
}
function checkText2(what, value, maxBytes) {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`${what} must be a text that is not empty, got ${show(value)}`);
  }
  if (value.includes("\0")) {
    throw new TypeError(`${what} must not contain a NUL character: Postgres cannot keep it`);
  }
  if (HALF_SURROGATE.test(value)) {
    throw new TypeError(`${what} must not contain half of a surrogate pair: it is not Unicode text`);
  }
  const bytes = new TextEncoder().encode(value).length;
  if (bytes > maxBytes) {
    throw new TypeError(`${what} must be at most ${maxBytes} bytes of UTF-8, got ${bytes}`);
  }
  return value;
}
function checkId(method, id) {
  if (typeof id === "number" && Number.isSafeInteger(id) && id > 0) return id;
  throw new TypeError(`${method}: id must be a job's id, a whole number above 0; got ${String(id)}`);
}
function show(value) {
  if (value instanceof Date) return "an invalid or out-of-range Date";
  return typeof value === "string" ? `'${value.slice(0, 60)}'` : String(value);
}

// src/job/standard-schema.ts
function unvalidated() {
  return {
    "~standard": {
      version: 1,
      vendor: "drizzle-queue",
      validate: acceptAs
    }
  };
}
function acceptAs(value) {
  return { value };
}
function isUnvalidated(schema) {
  return schema["~standard"].validate === acceptAs;
}
function isStandardSchema(value) {
  return (typeof value === "object" || typeof value === "function") && value !== null && "~standard" in value && typeof value["~standard"]?.validate === "function";
}

// src/job/definition.ts
var DEFAULT_QUEUE = "default";
var DEFAULT_PRIORITY = 5;
var DEFAULT_MAX_ATTEMPTS = 20;
function defineJob(kind, options = {}) {
  checkText2("defineJob: kind", kind, MAX_NAME_BYTES);
  const what = (option) => `defineJob('${kind}'): ${option}`;
  for (const name of ["payload", "output"]) {
    if (options[name] !== void 0 && !isStandardSchema(options[name])) {
      throw new TypeError(
        `${what(name)} must be a Standard Schema (zod, valibot, arktype, \u2026) or unvalidated<T>()`
      );
    }
  }
  const { timeoutMs } = options;
  const backoff = options.backoff ?? exponentialBackoff();
  const keepResult = options.keepResult ?? true;
  if (typeof backoff !== "function") {
    throw new TypeError(`${what("backoff")} must be a function, got ${String(backoff)}`);
  }
  if (typeof keepResult !== "boolean") {
    throw new TypeError(`${what("keepResult")} must be true or false, got ${String(keepResult)}`);
  }
  return Object.freeze({
    kind,
    // An absent schema is `undefined` in the type parameter as well, which TypeScript cannot follow through the default.
    payload: options.payload,
    output: options.output,
    queue: checkText2(what("queue"), options.queue ?? DEFAULT_QUEUE, MAX_NAME_BYTES),
    priority: checkInteger(what("priority"), options.priority ?? DEFAULT_PRIORITY, 0, MAX_PRIORITY),
    maxAttempts: checkInteger(
      what("maxAttempts"),
      options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
      1,
      MAX_ATTEMPTS
    ),
    timeoutMs: timeoutMs === void 0 ? void 0 : checkDurationMs(what("timeoutMs"), timeoutMs, 1, MAX_TIMER_MS),
    backoff,
    keepResult
  });
}
function checkDefinition(caller, value) {
  if (typeof value !== "object" || value === null || typeof value.kind !== "string" || !("maxAttempts" in value)) {
    const got = typeof value === "string" ? `the text '${value}'` : String(value);
    throw new UnknownKindError(`${caller} takes a job definition, as defineJob() makes it; got ${got}`);
  }
}

// src/job/outcome.ts
var Snooze = class {
  constructor(delayMs) {
    this.delayMs = delayMs;
    void this.#snooze;
  }
  /** Keeps the type nominal: an output that happens to have a `delayMs` is no snooze. */
  #snooze = true;
};
var Cancel = class {
  constructor(reason) {
    this.reason = reason;
    void this.#cancel;
  }
  /** Keeps the type nominal: an output that happens to have a `reason` is no cancel. */
  #cancel = true;
};
function snooze(delayMs) {
  return new Snooze(checkDurationMs("snooze: delayMs", delayMs));
}
function cancel(reason) {
  return new Cancel(String(reason));
}

// src/enqueue-from.ts
import { Column, is, SQL, sql as sql3 } from "drizzle-orm";

// src/job/validate.ts
function payloadToStore(job, payload) {
  return toStore(job, job.payload, payload, InvalidPayloadError);
}
async function outputToStore(job, output) {
  return await toStore(job, job.output, output, InvalidOutputError);
}
async function payloadFromStore(job, stored) {
  const value = job.payload === void 0 ? void 0 : await parseStored(job, job.payload, stored);
  return value;
}
async function parseStored(job, schema, stored) {
  try {
    return await parse(job, schema, stored, InvalidPayloadError);
  } catch (error) {
    if (stored !== null || !(error instanceof InvalidPayloadError)) throw error;
    const absent = await schema["~standard"].validate(void 0);
    if (absent.issues !== void 0) throw error;
    return absent.value;
  }
}
function toStore(job, schema, value, Refused) {
  const json = storedJsonOf(job, value === void 0 ? null : value, Refused);
  if (schema === void 0 || isUnvalidated(schema)) return json;
  const result = schema["~standard"].validate(value === void 0 ? void 0 : JSON.parse(json));
  if (!("then" in result)) {
    accepted(job, result, Refused);
    return json;
  }
  return result.then((result2) => {
    accepted(job, result2, Refused);
    return json;
  });
}
function storedJsonOf(job, value, Refused) {
  try {
    return toStoredJson(value);
  } catch (error) {
    if (error instanceof UnstorableValueError) throw new Refused(job.kind, [error.issue]);
    throw error;
  }
}
async function parse(job, schema, value, Refused) {
  return accepted(job, await schema["~standard"].validate(value), Refused);
}
function accepted(job, result, Refused) {
  if (result.issues !== void 0) throw new Refused(job.kind, result.issues.map(toValidationIssue));
  return result.value;
}
function toValidationIssue({ message, path = [] }) {
  return { message, path: formatPath(path.map((part) => typeof part === "object" ? part.key : part)) };
}

// src/job/new-job.ts
function newJob(job, payload, options = NO_OPTIONS) {
  const { delayMs, runAt, uniqueKey, metadata } = options;
  if (delayMs !== void 0 && runAt !== void 0) {
    throw new TypeError(`${optionOf(job, "delayMs and runAt")} exclude each other`);
  }
  const queue = options.queue === void 0 ? job.queue : checkText2(optionOf(job, "queue"), options.queue, MAX_NAME_BYTES);
  const priority = options.priority ?? job.priority;
  if (priority !== job.priority) checkInteger(optionOf(job, "priority"), priority, 0, MAX_PRIORITY);
  const maxAttempts = options.maxAttempts ?? job.maxAttempts;
  if (maxAttempts !== job.maxAttempts)
    checkInteger(optionOf(job, "maxAttempts"), maxAttempts, 1, MAX_ATTEMPTS);
  const made = (payload2) => ({
    queue,
    kind: job.kind,
    payload: payload2,
    priority,
    maxAttempts,
    delayMs: delayMs === void 0 ? 0 : checkDurationMs(optionOf(job, "delayMs"), delayMs ?? 0),
    runAtMs: runAt === void 0 ? null : checkDate(optionOf(job, "runAt"), runAt).getTime(),
    uniqueKey: uniqueKey === void 0 ? null : checkText2(optionOf(job, "uniqueKey"), uniqueKey, MAX_UNIQUE_KEY_BYTES),
    metadata: metadata === void 0 ? "{}" : metadataToStore(job.kind, metadata)
  });
  const stored = payloadToStore(job, payload);
  return typeof stored === "string" ? made(stored) : stored.then(made);
}
var NO_OPTIONS = {};
function optionOf({ kind }, option) {
  return `enqueue('${kind}'): ${option}`;
}
function metadataToStore(kind, metadata) {
  let json;
  try {
    json = toStoredJson(metadata);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const path = error.issue.path === "" ? "metadata" : `metadata.${error.issue.path}`;
    throw new InvalidPayloadError(kind, [{ ...error.issue, path }]);
  }
  if (!json.startsWith("{")) throw new TypeError(`enqueue('${kind}'): metadata must be an object`);
  return json;
}

// src/queries/insert-selected-jobs.ts
import { sql as sql2 } from "drizzle-orm";

// src/queries/executor.ts
import { getTableName } from "drizzle-orm";
async function queryRows(db, tables2, query, { withUsersSql = false } = {}) {
  let result;
  try {
    result = await db.execute(query);
  } catch (error) {
    throw missingMigration(error, tables2, withUsersSql) ?? error;
  }
  return Array.isArray(result) ? result : result.rows;
}
function sqlStateOf(error) {
  for (let at = error; at instanceof Error; at = at.cause) {
    for (const value of [Reflect.get(at, "code"), Reflect.get(at, "errno")]) {
      if (typeof value === "string" && /^[0-9A-Z]{5}$/.test(value)) return value;
    }
  }
  return void 0;
}
var UNDEFINED_TABLE = "42P01";
var UNDEFINED_COLUMN = "42703";
function missingMigration(error, tables2, withUsersSql) {
  const sqlState = sqlStateOf(error);
  if (sqlState !== UNDEFINED_TABLE && sqlState !== UNDEFINED_COLUMN) return void 0;
  let driverError = error;
  while (driverError instanceof Error && driverError.cause instanceof Error) driverError = driverError.cause;
  const message = driverError instanceof Error ? driverError.message : "";
  const namesOurs = Object.values(tables2).some(
    (table) => new RegExp(`(?<!\\w)${getTableName(table)}(?!\\w)`).test(message)
  );
  const ours = namesOurs || sqlState === UNDEFINED_COLUMN && !withUsersSql;
  if (!ours) return void 0;
  return new MissingMigrationError(`The queue's tables are not up to date (${message})`, { cause: error });
}

// src/queries/wake-up.ts
import { sql } from "drizzle-orm";
function notified(channel, queue) {
  return sql`pg_notify(${channel}::text, ${queue}) is not null`;
}

// src/queries/insert-selected-jobs.ts
async function insertSelectedJobs(db, tables2, jobs, wakeUp) {
  const query = insertSelectedJobsQuery(tables2, jobs, wakeUp);
  const [row] = await queryRows(db, tables2, query, { withUsersSql: true });
  const enqueued = Number(row?.enqueued);
  const duplicates = Number(row?.selected ?? enqueued) - enqueued;
  return { enqueued, duplicates, woken: row?.woke === true ? [jobs.queue] : [] };
}
function insertSelectedJobsQuery({ queueJobs: queueJobs2 }, jobs, wakeUp) {
  const insert = sql2`
      insert into ${queueJobs2} (queue, kind, max_attempts, payload, priority, run_at, created_at, unique_key, metadata)`;
  const columns = sql2`
        ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, ${jobs.payload}, (${jobs.priority})::int2,
        (${jobs.runAt})::timestamptz, statement_timestamp()`;
  const enqueued = wakeUp === void 0 ? sql2`select count(*)::float8 as enqueued, null as woke from inserted` : sql2`select enqueued, case when due then ${notified(wakeUp.channel, sql2`${jobs.queue}::text`)} end as woke
      from (
        select count(*)::float8 as enqueued, bool_or(i.run_at <= statement_timestamp()) as due from inserted as i
      ) as counted`;
  if (jobs.uniqueKey === void 0) {
    return sql2`
    with inserted as (${insert}
      select ${columns}, null, ${jobs.metadata}
      from ${jobs.source}
      returning run_at
    )
    ${enqueued}`;
  }
  return sql2`
    with i as materialized (
      select ${jobs.payload} as payload, (${jobs.priority})::int2 as priority, (${jobs.runAt})::timestamptz as run_at,
        (${jobs.uniqueKey})::text as unique_key, ${jobs.metadata} as metadata
      from ${jobs.source}
    ),
    inserted as (
      insert into ${queueJobs2} (queue, kind, max_attempts, created_at, payload, priority, run_at, unique_key, metadata)
      select ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, statement_timestamp(), i.*
      from i order by unique_key
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning run_at
    )
    select (select count(*) from i)::float8 as selected, e.* from (${enqueued}) as e`;
}

// src/enqueue-from.ts
async function enqueueSelected(db, tables2, jobs, wakeUps) {
  const insert = (wakeUp) => insertSelectedJobs(db, tables2, jobs, wakeUp);
  const { enqueued, duplicates } = wakeUps === void 0 ? await insert() : await wakeUps.allow(db, jobs.mayBeDue ? [jobs.queue] : [], insert);
  return { enqueued, duplicates };
}
function selectedJobs(job, select, options) {
  const what = (option) => `enqueueFrom('${job.kind}'): ${option}`;
  if (options.delayMs !== void 0 && options.runAt !== void 0) {
    throw new TypeError(`${what("delayMs and runAt")} exclude each other`);
  }
  const source = select.as("selected");
  const row = source;
  const delayMs = checkDurationMs(what("delayMs"), options.delayMs ?? 0);
  const { runAt, priority = job.priority } = options;
  return {
    source,
    mayBeDue: runAt !== void 0 || delayMs === 0,
    queue: checkText2(what("queue"), options.queue ?? job.queue, MAX_NAME_BYTES),
    kind: job.kind,
    maxAttempts: checkInteger(what("maxAttempts"), options.maxAttempts ?? job.maxAttempts, 1, MAX_ATTEMPTS),
    payload: job.payload === void 0 ? sql3`'null'::jsonb` : payloadOf(source, what("the select")),
    priority: typeof priority === "function" ? sql3`${priority(row)}` : sql3`${checkInteger(what("priority"), priority, 0, MAX_PRIORITY)}`,
    runAt: typeof runAt === "function" ? sql3`${runAt(row)}` : runAt === void 0 ? sql3`statement_timestamp() + ${delayMs}::float8 * interval '1 millisecond'` : sql3`${checkDate(what("runAt"), runAt).toISOString()}`,
    uniqueKey: options.uniqueKey === void 0 ? void 0 : sql3`${options.uniqueKey(row)}`,
    metadata: sql3`${options.metadata === void 0 ? "{}" : metadataToStore(job.kind, options.metadata)}::text::jsonb`
  };
}
function payloadOf(source, what) {
  const described = source;
  const fields = described._?.selectedFields;
  if (fields === void 0)
    throw new TypeError(`${what} must be a Drizzle select, such as db.select({ \u2026 }).from(\u2026)`);
  return objectOf(fields, source, what);
}
function objectOf(fields, values, what) {
  const pairs = Object.keys(fields).map((key) => {
    const value = Reflect.get(values, key);
    if (is(value, Column) || is(value, SQL) || is(value, SQL.Aliased)) return sql3`${key}::text, ${value}`;
    if (typeof value === "object" && value !== null) {
      return sql3`${key}::text, ${objectOf(value, value, what)}`;
    }
    throw new TypeError(`${what} has a field '${key}' that is neither a column nor an SQL expression`);
  });
  const objects = [];
  for (let from = 0; from < pairs.length; from += 50) {
    objects.push(sql3`jsonb_build_object(${sql3.join(pairs.slice(from, from + 50), sql3`, `)})`);
  }
  return objects.length === 1 ? sql3`${objects[0]}` : sql3`(${sql3.join(objects, sql3` || `)})`;
}

// src/queries/find-standing-jobs.ts
import { sql as sql5 } from "drizzle-orm";

// src/queries/json-rows.ts
import { sql as sql4 } from "drizzle-orm";
var MAX_PARAMETER_CHARACTERS = 32 * 1024 * 1024;
function jsonRows(rows, columns) {
  const names = columns.split(",").map((column) => column.trim().split(" ")[0] ?? "");
  const parts = partsOf(rows).map(
    ({ before, rows: rows2 }) => sql4`
        select ${sql4.raw(names.map((name) => `r.${name}`).join(", "))}, ${placeAfter(before)} as place
        from rows from (jsonb_to_recordset(${`[${rows2.join(",")}]`}::text::jsonb) as (${sql4.raw(columns)})) with ordinality
          as r(${sql4.raw(names.join(", "))}, place)`
  );
  return sql4`(${sql4.join(parts, sql4` union all `)})`;
}
function jsonElements(values) {
  const parts = partsOf(values).map(
    ({ before, rows }) => sql4`
        select r.element, ${placeAfter(before)} as place
        from jsonb_array_elements(${`[${rows.join(",")}]`}::text::jsonb) with ordinality as r(element, place)`
  );
  return sql4`(${sql4.join(parts, sql4` union all `)})`;
}
function placeAfter(before) {
  return sql4.raw(before === 0 ? "r.place" : `${before} + r.place`);
}
function partsOf(rows) {
  const parts = [];
  let size = Number.POSITIVE_INFINITY;
  for (const [index3, row] of rows.entries()) {
    if (size + row.length > MAX_PARAMETER_CHARACTERS) {
      parts.push({ before: index3, rows: [] });
      size = 0;
    }
    parts.at(-1)?.rows.push(row);
    size += row.length + 1;
  }
  return parts;
}

// src/queries/find-standing-jobs.ts
async function findStandingJobs(db, tables2, jobs) {
  const ids = new Array(jobs.length).fill(void 0);
  for (const row of await queryRows(db, tables2, findStandingJobsQuery(tables2, jobs))) {
    ids[Number(row.place) - 1] = Number(row.id);
  }
  return ids;
}
function findStandingJobsQuery({ queueJobs: queueJobs2 }, jobs) {
  const keys = jobs.map(
    ({ queue, kind, uniqueKey }) => JSON.stringify({ queue, kind, unique_key: uniqueKey })
  );
  return sql5`
    select i.place, j.id
    from ${jsonRows(keys, "queue text, kind text, unique_key text")} as i
    join ${queueJobs2} as j on j.queue = i.queue and j.kind = i.kind and j.unique_key = i.unique_key`;
}

// src/queries/insert-jobs.ts
import { sql as sql7 } from "drizzle-orm";

// src/queries/job-rows.ts
import { sql as sql6 } from "drizzle-orm";
var QUEUE = { column: "queue", type: "text", of: (job) => job.queue };
var KIND = { column: "kind", type: "text", of: (job) => job.kind };
var PRIORITY = { column: "priority", type: "int2", of: (job) => job.priority };
var DELAY = { column: "delay_ms", type: "float8", of: (job) => job.delayMs };
var RUN_AT = { column: "run_at_ms", type: "float8", of: (job) => job.runAtMs };
var MAX_ATTEMPTS2 = { column: "max_attempts", type: "int2", of: (job) => job.maxAttempts };
var UNIQUE_KEY = { column: "unique_key", type: "text", of: (job) => job.uniqueKey };
var METADATA = { column: "metadata", type: "jsonb", of: (job) => job.metadata };
var SETTINGS = [QUEUE, KIND, PRIORITY, DELAY, RUN_AT, MAX_ATTEMPTS2, UNIQUE_KEY, METADATA];
function jobRows(jobs) {
  const [first] = jobs;
  if (first === void 0) throw new TypeError("jobRows needs a job");
  if (jobs.length === 1) {
    return sql6`
      select ${first.queue}::text as queue, ${first.kind}::text as kind, ${first.payload}::text::jsonb as payload,
        ${first.priority}::int2 as priority,
        coalesce(to_timestamp(${first.runAtMs}::float8 / 1000), statement_timestamp() + ${first.delayMs}::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${first.maxAttempts}::int2 as max_attempts,
        ${first.uniqueKey}::text as unique_key, ${first.metadata}::text::jsonb as metadata, 1 as place`;
  }
  const varying = varyingSettings(first, jobs);
  const value = (setting) => varying.includes(setting) ? sql6.raw(`r.${setting.column}`) : parameter(setting, first);
  const { payload, rows } = payloads(jobs, varying);
  return sql6`
      select ${value(QUEUE)} as queue, ${value(KIND)} as kind, ${payload} as payload, ${value(PRIORITY)} as priority,
        coalesce(to_timestamp(${value(RUN_AT)} / 1000), statement_timestamp() + ${value(DELAY)} * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${value(MAX_ATTEMPTS2)} as max_attempts, ${value(UNIQUE_KEY)} as unique_key,
        ${value(METADATA)} as metadata, r.place from ${rows} as r`;
}
function varyingSettings(first, jobs) {
  const same = jobs.every(
    (job) => job.queue === first.queue && job.kind === first.kind && job.priority === first.priority && job.delayMs === first.delayMs && job.runAtMs === first.runAtMs && job.maxAttempts === first.maxAttempts && job.uniqueKey === first.uniqueKey && job.metadata === first.metadata
  );
  return same ? [] : SETTINGS.filter(({ of }) => jobs.some((job) => of(job) !== of(first)));
}
function parameter({ type, of }, job) {
  return type === "jsonb" ? sql6`${of(job)}::text::jsonb` : sql6`${of(job)}::${sql6.raw(type)}`;
}
function payloads(jobs, varying) {
  if (varying.length === 0) {
    return { payload: sql6`r.element`, rows: jsonElements(jobs.map(({ payload }) => payload)) };
  }
  const rows = jsonRows(
    jobs.map((job) => rowOf(job, varying)),
    ["payload jsonb", ...varying.map(({ column, type }) => `${column} ${type}`)].join(", ")
  );
  return { payload: sql6`coalesce(r.payload, 'null'::jsonb)`, rows };
}
function rowOf(job, varying) {
  const settings = varying.map(({ column, type, of }) => {
    const value = of(job);
    return `,"${column}":${type === "jsonb" ? value : JSON.stringify(value)}`;
  });
  return `{"payload":${job.payload}${settings.join("")}}`;
}

// src/queries/quoted-name.ts
import { getTableConfig } from "drizzle-orm/pg-core";
function quotedName(table) {
  const { schema, name } = getTableConfig(table);
  return [schema, name].filter((part) => part !== void 0).map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}

// src/queries/insert-jobs.ts
async function insertJobs(db, tables2, jobs, wakeUp) {
  const ids = new Array(jobs.length).fill(void 0);
  const woken = /* @__PURE__ */ new Set();
  if (jobs.length === 0) return { ids, woken };
  const numbered = jobs.length > 1 && jobs.some(hasKey);
  const query = numbered ? insertKeyedJobsQuery(tables2, jobs, wakeUp) : insertJobsQuery(tables2, jobs, wakeUp);
  for (const [at, { id, place, woke: woke2 }] of (await queryRows(db, tables2, query)).entries()) {
    const index3 = numbered ? Number(place) - 1 : at;
    ids[index3] = Number(id);
    if (woke2 === true) woken.add(jobs[index3]?.queue ?? "");
  }
  return { ids, woken };
}
function insertJobsQuery({ queueJobs: queueJobs2 }, jobs, wakeUp) {
  const unlessDuplicate = jobs.some(hasKey) ? UNLESS_DUPLICATE : sql7``;
  const insert = sql7`
    insert into ${queueJobs2} (${COLUMNS})
    select ${COLUMNS} from (${jobRows(jobs)}) as i order by place${unlessDuplicate}
    returning id`;
  if (wakeUp === void 0) return insert;
  return sql7`
    with inserted as (${insert}, queue, run_at)
    select i.id, ${woke(jobs, wakeUp)} from inserted as i`;
}
function insertKeyedJobsQuery({ queueJobs: queueJobs2 }, jobs, wakeUp) {
  return sql7`
    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence(${quotedName(queueJobs2)}, 'id')::regclass as sequence) as s,
        (select * from (${jobRows(jobs)}) as i order by place) as o
    ),
    inserted as (
      insert into ${queueJobs2} (id, ${COLUMNS}) overriding system value
      select id, ${COLUMNS} from numbered order by queue, kind, unique_key, place${UNLESS_DUPLICATE}
      returning id, queue, run_at
    )
    select n.place, i.id, ${wakeUp === void 0 ? sql7`null as woke` : woke(jobs, wakeUp)}
    from inserted as i join numbered as n on n.id = i.id`;
}
var COLUMNS = sql7.raw(
  "queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata"
);
var UNLESS_DUPLICATE = sql7`
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing`;
function woke(jobs, { channel, queues }) {
  const mixed = jobs.some(({ queue }) => queue !== jobs[0]?.queue);
  return sql7`case when i.run_at <= statement_timestamp()${mixed ? sql7` and ${JSON.stringify(queues)}::text::jsonb @> to_jsonb(i.queue)` : sql7``} then ${notified(channel, sql7`i.queue`)} end as woke`;
}
function hasKey({ uniqueKey }) {
  return uniqueKey !== null;
}

// src/enqueue-jobs.ts
var MAX_INSERTS = 10;
async function enqueueJobs(db, tables2, jobs, wakeUps) {
  const answers = new Array(jobs.length);
  let open = jobs.map((job, index3) => ({ job, index: index3 }));
  for (let tries = 0; open.length > 0; tries++) {
    if (tries === MAX_INSERTS) {
      throw new QueueError(
        `A live job with the same unique key came and went ${MAX_INSERTS} times during an enqueue`
      );
    }
    open = answer(open, await insert(jobsOf(open)), false);
    if (open.length > 0) open = answer(open, await findStandingJobs(db, tables2, jobsOf(open)), true);
  }
  return answers;
  async function insert(jobs2) {
    if (wakeUps === void 0) return (await insertJobs(db, tables2, jobs2)).ids;
    const queues = jobs2.filter(mayBeDue).map(({ queue }) => queue);
    return (await wakeUps.allow(db, queues, (wakeUp) => insertJobs(db, tables2, jobs2, wakeUp))).ids;
  }
  function answer(asked, ids, duplicate) {
    return asked.filter(({ index: index3 }, at) => {
      const id = ids[at];
      if (id !== void 0) answers[index3] = { id, duplicate };
      return id === void 0;
    });
  }
}
function mayBeDue({ delayMs, runAtMs }) {
  return runAtMs !== null || delayMs === 0;
}
function jobsOf(open) {
  return open.map(({ job }) => job);
}

// src/job/describe-error.ts
var MAX_NAME = 200;
var MAX_MESSAGE = 2e3;
var MAX_STACK = 8e3;
var MAX_CAUSES = 3;
var HALF_SURROGATES = new RegExp(HALF_SURROGATE, "g");
function describeError(thrown, attempt) {
  try {
    return recordOf(withoutQuery(thrown), attempt);
  } catch {
    return { attempt, name: "NonError", message: "thrown: a value that cannot be read" };
  }
}
function recordOf(error, attempt) {
  if (!(error instanceof Error)) {
    return { attempt, name: "NonError", message: storable(`thrown: ${preview(error)}`, MAX_MESSAGE) };
  }
  const record = {
    attempt,
    name: storable(String(error.name || "Error"), MAX_NAME),
    message: storable(messageWithCauses(error), MAX_MESSAGE)
  };
  return typeof error.stack === "string" ? { ...record, stack: storable(error.stack, MAX_STACK) } : record;
}
function messageWithCauses(error) {
  const messages = [messageIn(error)];
  let cause = withoutQuery(error.cause);
  while (cause !== void 0 && cause !== null && messages.length <= MAX_CAUSES) {
    messages.push(preview(cause));
    cause = cause instanceof Error ? withoutQuery(cause.cause) : void 0;
  }
  return messages.join(" [cause] ");
}
function messageIn(error) {
  const message = String(error.message);
  if (message !== "" || !(error instanceof AggregateError)) return message;
  return error.errors.slice(0, MAX_CAUSES).map(preview).join(", ");
}
function withoutQuery(thrown) {
  let error = thrown;
  for (let depth = 0; depth <= MAX_CAUSES && repeatsQuery(error); depth++) error = error.cause;
  return repeatsQuery(error) ? "a failed query, without the error that it failed with" : error;
}
function repeatsQuery(error) {
  return error instanceof Error && "query" in error && "params" in error && String(error.message).startsWith("Failed query:");
}
function preview(value) {
  const shown = withoutQuery(value);
  if (shown instanceof Error) return `${String(shown.name)}: ${messageIn(shown)}`;
  if (typeof shown !== "object") return String(shown);
  try {
    return JSON.stringify(shown, (_key, item) => item instanceof Error ? preview(item) : item) ?? String(shown);
  } catch {
    return Object.prototype.toString.call(shown);
  }
}
function storable(text4, maxLength = MAX_MESSAGE) {
  const cut = text4.length > maxLength ? `${text4.slice(0, maxLength - 1)}\u2026` : text4;
  return cut.replaceAll("\0", "\uFFFD").replaceAll(HALF_SURROGATES, "\uFFFD");
}

// src/queries/cancel-job.ts
import { sql as sql9 } from "drizzle-orm";

// src/queries/recorded-error.ts
import { sql as sql8 } from "drizzle-orm";

// src/schema/attempt-error.ts
var KEPT_ERRORS = 10;

// src/queries/recorded-error.ts
var now = `to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
function withTime(error) {
  return sql8`${error} || jsonb_build_object('at', ${sql8.raw(now)})`;
}
function withError(errors, error) {
  const full = sql8`jsonb_array_length(${errors}) >= ${sql8.raw(String(KEPT_ERRORS))}`;
  return sql8`case when ${error} is null then ${errors}
        else (case when ${full} then ${errors} - 0 else ${errors} end) || jsonb_build_array(${error}) end`;
}

// src/queries/cancel-job.ts
async function cancelJob(db, tables2, job) {
  const rows = await queryRows(db, tables2, cancelJobQuery(tables2, job));
  return rows.length > 0;
}
function cancelJobQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, job) {
  return sql9`
    with waiting as (
      select j.id from ${queueJobs2} as j
      where j.queue = ${job.queue} and j.id = ${job.id} and j.worker_id is null
      for no key update skip locked
    ),
    cancelled as (
      delete from ${queueJobs2} as j
      where j.queue = ${job.queue} and j.id = any(array(select id from waiting))
      returning j.*
    )
    insert into ${queueResults2} (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
      unique_key, metadata, created_at, run_at, finished_at)
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      ${withError(sql9`c.errors`, sql9`(${withTime(sql9`${JSON.stringify(job.reason)}::text::jsonb`)})`)},
      c.attempt, c.max_attempts, c.priority, c.fence, c.unique_key, c.metadata, c.created_at, c.run_at, statement_timestamp()
    from cancelled as c
    returning job_id`;
}

// src/queries/find-job.ts
import { sql as sql12 } from "drizzle-orm";

// src/queries/job-record.ts
import { sql as sql11 } from "drizzle-orm";

// src/queries/epoch-ms.ts
import { sql as sql10 } from "drizzle-orm";
function epochMs(column) {
  return sql10.raw(`date_part('epoch', ${column}) * 1000`);
}
function dateOf(value) {
  return new Date(Math.floor(Number(value) + 5e-4));
}

// src/queries/job-record.ts
function liveRecords({ queueJobs: queueJobs2 }, where) {
  return sql11`
      select j.id, j.queue, j.kind, ${liveState} as state, j.payload, null::jsonb as output, j.errors, j.attempt, j.max_attempts,
        j.priority, j.unique_key, j.metadata, j.worker_id, ${epochMs("j.created_at")} as created_at,
        ${epochMs("j.run_at")} as run_at, ${epochMs("j.claimed_at")} as claimed_at, null::float8 as finished_at
      from ${queueJobs2} as j where ${where}`;
}
function resultRecords({ queueResults: queueResults2 }, where) {
  return sql11`
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors, r.attempt, r.max_attempts,
        r.priority, r.unique_key, r.metadata, r.worker_id, ${epochMs("r.created_at")} as created_at,
        ${epochMs("r.run_at")} as run_at, ${epochMs("r.claimed_at")} as claimed_at, ${epochMs("r.finished_at")} as finished_at
      from ${queueResults2} as r where ${where}`;
}
var liveState = sql11.raw(
  `case when j.worker_id is not null then 'running' when j.run_at > statement_timestamp() then 'scheduled' else 'due' end`
);
function toJobRecord(row) {
  const common = {
    id: Number(row.id),
    queue: String(row.queue),
    kind: String(row.kind),
    payload: row.payload,
    priority: Number(row.priority),
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    uniqueKey: row.unique_key === null ? null : String(row.unique_key),
    // The two jsonb columns are written by us alone, in these shapes.
    metadata: row.metadata,
    errors: row.errors,
    createdAt: dateOf(row.created_at),
    runAt: dateOf(row.run_at)
  };
  const workerId = row.worker_id === null ? null : Number(row.worker_id);
  const claimedAt = row.claimed_at === null ? null : dateOf(row.claimed_at);
  const state = row.state;
  switch (state) {
    case "scheduled":
    case "due":
      return { ...common, state };
    case "running":
      return { ...common, state, workerId: Number(workerId), claimedAt: claimedAt ?? common.runAt };
    case "completed":
      return {
        ...common,
        state,
        workerId,
        claimedAt,
        finishedAt: dateOf(row.finished_at),
        output: row.output
      };
    case "discarded":
    case "cancelled":
      return { ...common, state, workerId, claimedAt, finishedAt: dateOf(row.finished_at) };
  }
}

// src/queries/find-job.ts
async function findJob(db, tables2, id) {
  const [row] = await queryRows(db, tables2, findJobQuery(tables2, id));
  return row === void 0 ? void 0 : toJobRecord(row);
}
function findJobQuery(tables2, id) {
  return sql12`
    ${liveRecords(tables2, sql12`j.id = ${id}`)}
    union all ${resultRecords(tables2, sql12`r.job_id = ${id}`)}`;
}

// src/queries/list-jobs.ts
import { sql as sql13 } from "drizzle-orm";
async function listJobs(db, tables2, page) {
  const rows = await queryRows(db, tables2, listJobsQuery(tables2, page));
  return rows.map(toJobRecord);
}
function listJobsQuery(tables2, page) {
  const { kind, queue, state, before, limit } = page;
  const where = (table, id, stateText) => {
    const column = (name) => sql13.raw(`${table}.${name}`);
    const conditions = [
      before === void 0 ? void 0 : sql13`${column(id)} < ${before}`,
      queue === void 0 ? void 0 : sql13`${column("queue")} = ${queue}`,
      kind === void 0 ? void 0 : sql13`${column("kind")} = ${kind}`,
      state === void 0 ? void 0 : sql13`${stateText} = ${state}`
    ].filter((condition) => condition !== void 0);
    const all = conditions.length === 0 ? sql13`true` : sql13.join(conditions, sql13` and `);
    return sql13`${all} order by ${column(id)} desc limit ${limit}`;
  };
  const halves = [
    state === void 0 || isLive(state) ? sql13`(${liveRecords(tables2, where("j", "id", liveState))})` : void 0,
    state === void 0 || !isLive(state) ? sql13`(${resultRecords(tables2, where("r", "job_id", sql13.raw("r.state")))})` : void 0
  ].filter((half) => half !== void 0);
  return sql13`
    select * from (
      ${sql13.join(halves, sql13` union all `)}
    ) as record
    order by id desc limit ${limit}`;
}
function isLive(state) {
  return state === "scheduled" || state === "due" || state === "running";
}

// src/queries/wake-channel.ts
import { getTableConfig as getTableConfig2 } from "drizzle-orm/pg-core";
function wakeChannel({ queueJobs: queueJobs2 }) {
  const { schema, name } = getTableConfig2(queueJobs2);
  if (schema === void 0 && /^[a-z0-9_]{1,50}$/.test(name)) return `queue_wake_${name}`;
  const readable = [schema, name].join("_").toLowerCase().replaceAll(/[^a-z0-9]+/g, "_");
  return `queue_wakes_${readable.slice(0, 34)}_${hash64(JSON.stringify([schema ?? null, name]))}`;
}
function hash64(text4) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text4)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

// src/queries/redrive-jobs.ts
import { sql as sql14 } from "drizzle-orm";
async function redriveJobs(db, tables2, redrive2, wakeUp) {
  const [row] = await queryRows(db, tables2, redriveJobsQuery(tables2, redrive2, wakeUp));
  const redriven = Number(row?.redriven);
  return { redriven, duplicates: Number(row?.discarded) - redriven };
}
function redriveJobsQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, redrive2, wakeUp) {
  const { id, kind, queue, finishedAfter, finishedBefore, limit } = redrive2;
  const conditions = [
    sql14`r.state = 'discarded'`,
    id === void 0 ? void 0 : sql14`r.job_id = ${id}`,
    kind === void 0 ? void 0 : sql14`r.kind = ${kind}`,
    queue === void 0 ? void 0 : sql14`r.queue = ${queue}`,
    finishedAfter === void 0 ? void 0 : sql14`r.finished_at >= ${finishedAfter.toISOString()}::timestamptz`,
    finishedBefore === void 0 ? void 0 : sql14`r.finished_at < ${finishedBefore.toISOString()}::timestamptz`
  ].filter((condition) => condition !== void 0);
  return sql14`
    with discarded as materialized (
      select r.* from ${queueResults2} as r
      where ${sql14.join(conditions, sql14` and `)}
      order by r.job_id limit ${limit ?? null}::int8
      for no key update skip locked
    ),
    redriven as (
      insert into ${queueJobs2} (id, queue, kind, payload, priority, run_at, attempt, max_attempts, fence, unique_key, errors,
        metadata, created_at) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, statement_timestamp(), 0, d.max_attempts, d.fence,
        d.unique_key, d.errors, d.metadata, d.created_at
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue
    ),
    removed as (
      delete from ${queueResults2} as r
      where (r.job_id, r.queue) in (select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven, (select count(*) from discarded)::float8 as discarded${wakeUp === void 0 ? sql14`` : sql14`,
      (select count(${notified(wakeUp.channel, sql14`d.queue`)}) from (select distinct queue from redriven) as d)::float8 as woken`}`;
}

// src/wake-ups.ts
var INTERVAL_MS = 50;
var BURST = 5;
var MAX_QUEUES = 1e3;
var ANY_QUEUE = "";
var WakeUps = class {
  /** @param now a clock in milliseconds that never goes back; a test's own, or the process's */
  constructor(channel, now2 = () => performance.now()) {
    this.channel = channel;
    this.now = now2;
  }
  /**
   * When the queue's bucket will be full again, on the clock of `now`. So one number is the bucket: it is empty when this is
   * `BURST` intervals away.
   */
  #fullAt = /* @__PURE__ */ new Map();
  /** The queues that an open transaction has notified already: they will hear of it at its commit, once. */
  #notifiedBy = /* @__PURE__ */ new WeakMap();
  /**
   * Runs a statement with the queues that it may notify, and counts those that it did: not where it failed, inserted nothing, or
   * no job of its is due yet.
   */
  async allow(db, queues, run) {
    const allowed = [...new Set(queues)].filter((queue) => this.#take(db, queue));
    const unused = new Set(allowed);
    try {
      const result = await run(allowed.length === 0 ? void 0 : { channel: this.channel, queues: allowed });
      for (const queue of result.woken) {
        unused.delete(queue);
        this.#remember(db, queue);
      }
      return result;
    } finally {
      for (const queue of unused) this.#giveBack(queue);
    }
  }
  #take(db, queue) {
    if (this.#notifiedBy.get(db)?.has(queue)) return false;
    const now2 = this.now();
    const fullAt = Math.max(this.#fullAt.get(queue) ?? now2, now2) + INTERVAL_MS;
    if (fullAt > now2 + BURST * INTERVAL_MS) return false;
    if (this.#fullAt.size >= MAX_QUEUES && !this.#fullAt.has(queue)) this.#forgetFull(now2);
    this.#fullAt.set(queue, fullAt);
    return true;
  }
  #giveBack(queue) {
    const fullAt = this.#fullAt.get(queue);
    if (fullAt !== void 0) this.#fullAt.set(queue, fullAt - INTERVAL_MS);
  }
  #remember(db, queue) {
    if (!("rollback" in db) || queue === ANY_QUEUE) return;
    const notified2 = this.#notifiedBy.get(db) ?? /* @__PURE__ */ new Set();
    this.#notifiedBy.set(db, notified2.add(queue));
  }
  /** A full bucket is as good as none. */
  #forgetFull(now2) {
    for (const [queue, fullAt] of this.#fullAt) if (fullAt <= now2) this.#fullAt.delete(queue);
  }
};

// src/redrive.ts
async function redrive(db, tables2, which, wakeUps) {
  const filter = typeof which === "number" ? { id: checkId("redrive", which) } : checkFilter(which);
  if (wakeUps === void 0) return await redriveJobs(db, tables2, filter);
  const key = typeof which === "number" ? ANY_QUEUE : which.queue ?? ANY_QUEUE;
  const { redriven, duplicates } = await wakeUps.allow(db, [key], async (wakeUp) => {
    const answer = await redriveJobs(db, tables2, filter, wakeUp);
    return { ...answer, woken: answer.redriven > 0 && wakeUp !== void 0 ? [key] : [] };
  });
  return { redriven, duplicates };
}
function checkFilter(filter) {
  const { limit, finishedAfter, finishedBefore } = filter;
  if (finishedAfter !== void 0) checkDate("redrive: finishedAfter", finishedAfter);
  if (finishedBefore !== void 0) checkDate("redrive: finishedBefore", finishedBefore);
  if (limit !== void 0) checkInteger("redrive: limit", limit, 1, Number.MAX_SAFE_INTEGER);
  return filter;
}

// src/schema/declare-table.ts
import { pgTable } from "drizzle-orm/pg-core";
function declareTableIn(schema) {
  return schema === void 0 ? pgTable : schema.table;
}

// src/schema/queue-jobs.ts
import { sql as sql15 } from "drizzle-orm";
import {
  bigint,
  check as check2,
  index,
  integer,
  jsonb,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex
} from "drizzle-orm/pg-core";
function defineJobsTable(table, name) {
  const jobs = table(
    name,
    {
      id: bigint("id", { mode: "number" }).notNull().generatedAlwaysAsIdentity(),
      runAt: timestamp("run_at", { withTimezone: true }).notNull().defaultNow(),
      createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
      claimedAt: timestamp("claimed_at", { withTimezone: true }),
      workerId: bigint("worker_id", { mode: "number" }),
      fence: integer("fence").notNull().default(0),
      priority: smallint("priority").notNull().default(5),
      attempt: smallint("attempt").notNull().default(0),
      maxAttempts: smallint("max_attempts").notNull(),
      queue: text("queue").notNull(),
      kind: text("kind").notNull(),
      uniqueKey: text("unique_key"),
      payload: jsonb("payload").notNull(),
      errors: jsonb("errors").$type().notNull().default([]),
      metadata: jsonb("metadata").$type().notNull().default({})
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.id, t.queue] }),
      // `priority` leads: a bare `queue = …` in another statement must not tempt the planner to walk a whole queue. And it
      // is partial, by a predicate that always holds and that only the claim repeats: PostgreSQL 18 skips over a leading column,
      // so without it statements that name ids walked this index (47–74 ms for 200 jobs instead of 3).
      index(`${name}_claim_idx`).on(t.priority, t.queue, t.runAt, t.id).where(sql15`priority >= 0`),
      uniqueIndex(`${name}_unique_key_idx`).on(t.queue, t.kind, t.uniqueKey).where(sql15`unique_key is not null`),
      check2(`${name}_priority_check`, sql15`priority between 0 and 9`)
    ]
  );
  return jobs;
}

// src/schema/queue-results.ts
import { sql as sql16 } from "drizzle-orm";
import {
  bigint as bigint2,
  check as check3,
  index as index2,
  integer as integer2,
  jsonb as jsonb2,
  primaryKey as primaryKey2,
  smallint as smallint2,
  text as text2,
  timestamp as timestamp2
} from "drizzle-orm/pg-core";
function defineResultsTable(table, name) {
  const results = table(
    name,
    {
      jobId: bigint2("job_id", { mode: "number" }).notNull(),
      createdAt: timestamp2("created_at", { withTimezone: true }).notNull(),
      runAt: timestamp2("run_at", { withTimezone: true }).notNull(),
      claimedAt: timestamp2("claimed_at", { withTimezone: true }),
      finishedAt: timestamp2("finished_at", { withTimezone: true }).notNull().defaultNow(),
      workerId: bigint2("worker_id", { mode: "number" }),
      fence: integer2("fence").notNull(),
      priority: smallint2("priority").notNull(),
      attempt: smallint2("attempt").notNull(),
      maxAttempts: smallint2("max_attempts").notNull(),
      queue: text2("queue").notNull(),
      kind: text2("kind").notNull(),
      state: text2("state").$type().notNull(),
      uniqueKey: text2("unique_key"),
      payload: jsonb2("payload").notNull(),
      output: jsonb2("output"),
      errors: jsonb2("errors").$type().notNull(),
      metadata: jsonb2("metadata").$type().notNull()
    },
    (t) => [
      primaryKey2({ name: `${name}_pkey`, columns: [t.jobId, t.queue] }),
      // Pruning reads the oldest; without this it would read the whole history once a minute.
      index2(`${name}_finished_at_idx`).on(t.finishedAt),
      check3(`${name}_state_check`, sql16`state in ('completed', 'discarded', 'cancelled')`)
    ]
  );
  return results;
}

// src/schema/queue-workers.ts
import { bigint as bigint3, boolean, jsonb as jsonb3, text as text3, timestamp as timestamp3 } from "drizzle-orm/pg-core";
function defineWorkersTable(table, name) {
  const workers = table(name, {
    id: bigint3("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    name: text3("name").notNull(),
    queues: jsonb3("queues").$type().notNull(),
    startedAt: timestamp3("started_at", { withTimezone: true }).notNull().defaultNow(),
    seenAt: timestamp3("seen_at", { withTimezone: true }).notNull().defaultNow(),
    session: integer("session")
  });
  return workers;
}

// src/schema/create-queue-tables.ts
function createQueueTables(options = {}) {
  const prefix = options.prefix ?? "queue_";
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(prefix)) {
    throw new TypeError(
      `createQueueTables: prefix must be 1\u201340 characters of a\u2013z, 0\u20139 and _, not starting with a digit; got '${prefix}'`
    );
  }
  const table = declareTableIn(options.schema);
  return {
    queueJobs: defineJobsTable(table, `${prefix}jobs`),
    queueResults: defineResultsTable(table, `${prefix}results`),
    queueWorkers: defineWorkersTable(table, `${prefix}workers`)
  };
}

// src/schema/index.ts
var tables = createQueueTables();
var queueJobs = tables.queueJobs;
var queueResults = tables.queueResults;
var queueWorkers = tables.queueWorkers;

// src/queue.ts
var Queue = class {
  constructor(tables2, { wakeUps = true } = {}) {
    this.tables = tables2;
    this.#wakeUps = wakeUps ? new WakeUps(wakeChannel(tables2)) : void 0;
  }
  #wakeUps;
  /**
   * Puts one job in. With a transaction, the job exists if and only if the transaction commits, and no worker sees it earlier.
   *
   * Under concurrency: see `uniqueKey`. An enqueue with a key waits for another open transaction that has just enqueued the
   * same key, since only its end decides who of the two is the duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   * @throws MissingMigrationError when the tables are missing
   */
  async enqueue(db, job, ...[payload, options]) {
    checkDefinition("enqueue", job);
    const jobs = [await newJob(job, payload, options)];
    const [enqueued] = await enqueueJobs(db, this.tables, jobs, this.#wakeUps);
    if (enqueued === void 0) throw new QueueError("The insert returned no row");
    return enqueued;
  }
  /**
   * Puts any number of jobs of one kind in, in one statement; the answers stand in input order. Keys that repeat within the
   * input are duplicates of the first. All or nothing: one invalid entry, and none is sent.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   */
  async enqueueMany(db, job, entries) {
    checkDefinition("enqueueMany", job);
    const jobs = [];
    for (const entry of entries) {
      const made = newJob(job, entry.payload, entry);
      jobs.push("then" in made ? await made : made);
    }
    return await enqueueJobs(db, this.tables, jobs, this.#wakeUps);
  }
  /**
   * Puts one job in per row of a Drizzle select, as one `INSERT … SELECT`: a million jobs without a round trip each. A row
   * becomes the payload, with the select's own keys, as Postgres writes it in JSON. Rows are not validated here; a
   * worker validates when it claims.
   *
   * ```ts
   * const due = tx.select({ userId: users.id }).from(users).where(lt(users.trialEndsAt, sql`now()`));
   * await queue.enqueueFrom(tx, remindUser, due, { uniqueKey: (row) => sql`${row.userId}::text` });
   * ```
   */
  async enqueueFrom(db, job, select, options = {}) {
    checkDefinition("enqueueFrom", job);
    return await enqueueSelected(db, this.tables, selectedJobs(job, select, options), this.#wakeUps);
  }
  async find(db, jobOrId, id) {
    if (typeof jobOrId === "number") return await findJob(db, this.tables, checkId("find", jobOrId));
    checkDefinition("find", jobOrId);
    const record = await findJob(db, this.tables, checkId("find", id));
    return record?.kind === jobOrId.kind ? record : void 0;
  }
  /**
   * Live jobs and results in one list, newest id first, a page at a time. A job keeps its id for life, so one that finishes
   * between two pages is neither missed nor listed twice.
   *
   * ```ts
   * const { jobs, nextCursor } = await queue.list(db, { job: sendReceipt, state: 'discarded' });
   * ```
   */
  async list(db, filter = {}) {
    const limit = checkInteger("list: limit", filter.limit ?? 50, 1, 1e3);
    if (filter.job !== void 0) checkDefinition("list", filter.job);
    if (filter.job !== void 0 && filter.kind !== void 0) {
      throw new TypeError("list: job and kind exclude each other");
    }
    if (filter.cursor !== void 0) checkInteger("list: cursor", filter.cursor, 1, Number.MAX_SAFE_INTEGER);
    const records = await listJobs(db, this.tables, {
      kind: filter.job?.kind ?? filter.kind,
      queue: filter.queue,
      state: filter.state,
      before: filter.cursor,
      limit: limit + 1
    });
    const jobs = records.slice(0, limit);
    return { jobs, nextCursor: records.length > limit ? jobs.at(-1)?.id : void 0 };
  }
  /**
   * Ends a job that waits (scheduled or due). A running job is left alone, and so is a finished one; the answer says which.
   *
   * Under concurrency: against a claim one of the two wins, and never both.
   */
  async cancel(db, id, reason = "cancelled") {
    const found = await findJob(db, this.tables, checkId("cancel", id));
    if (found === void 0) return { cancelled: false, reason: "not-found" };
    if ("finishedAt" in found) return { cancelled: false, reason: "finished" };
    const { message } = describeError(new Error(reason), found.attempt);
    const error = { attempt: found.attempt, name: "Cancelled", message };
    if (await cancelJob(db, this.tables, { id, queue: found.queue, reason: error }))
      return { cancelled: true };
    const now2 = await findJob(db, this.tables, id);
    return { cancelled: false, reason: now2 === void 0 || "finishedAt" in now2 ? "finished" : "running" };
  }
  /**
   * Puts discarded jobs back, one by id or many by filter: due now, with all their attempts again, under their old ids.
   * A job whose unique key a live job holds stays discarded and is counted in `duplicates`.
   *
   * Under concurrency: two redrives of the same jobs put each back once.
   */
  async redrive(db, which) {
    return await redrive(db, this.tables, which, this.#wakeUps);
  }
};
function createQueue(options = {}) {
  return new Queue(options.tables ?? { queueJobs, queueResults, queueWorkers }, options);
}

// src/worker/pause.ts
async function pause(ms, signal) {
  if (signal.aborted) return;
  await new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

// src/drivers/listen.ts
function aborted(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

// src/drivers/listen-node-postgres.ts
var CONNECT_TIMEOUT_MS = 1e4;
function listenByNodePostgres(client) {
  const source = clientSource(client);
  if (source === void 0) return void 0;
  const [Client, config] = source;
  return async (channel, events, signal) => {
    const listener = new Client({
      ...config,
      // pg hides the password from `{ ...config }`.
      ..."password" in config && { password: config.password },
      keepAlive: true,
      connectionTimeoutMillis: config.connectionTimeoutMillis || CONNECT_TIMEOUT_MS
    });
    try {
      const lost = new Promise((_, reject) => {
        listener.on("error", reject);
        listener.on("end", () => reject(new Error("The connection that listens was closed")));
        listener.on("notification", ({ payload }) => {
          if (!signal.aborted) events.notify(payload ?? "");
        });
        listener.connect().then(() => listener.query(`listen "${channel}"`)).then(() => {
          if (!signal.aborted) events.ready();
        }).catch(reject);
      });
      await Promise.race([lost, aborted(signal)]);
    } finally {
      listener.end().catch(() => void 0);
      listener.unref?.();
    }
  };
}
function clientSource(client) {
  const fields = client;
  const { connect, Client, options, connectionParameters, constructor: ownClass } = fields;
  if (typeof connect !== "function") return void 0;
  if (typeof Client === "function" && isConfig(options)) return [Client, options];
  if (typeof ownClass === "function" && isConfig(connectionParameters))
    return [ownClass, connectionParameters];
  return void 0;
}
function isConfig(value) {
  return typeof value === "object" && value !== null;
}

// src/drivers/listen-pglite.ts
function listenByPGlite(client) {
  return async (channel, events, signal) => {
    const unlisten = await client.listen(channel, (payload) => {
      if (!signal.aborted) events.notify(payload);
    });
    if (!signal.aborted) events.ready();
    await aborted(signal);
    unlisten().catch(() => void 0);
  };
}

// src/drivers/listen-postgres-js.ts
function listenByPostgresJs({ listen }) {
  return async (channel, events, signal) => {
    const onNotify = (payload) => {
      if (!signal.aborted) events.notify(payload);
    };
    const onListen = () => {
      if (!signal.aborted) events.ready();
    };
    let subscription;
    try {
      const over = aborted(signal);
      const listening = listen(channel, onNotify, onListen).then((value) => {
        subscription = value;
      });
      await Promise.race([listening, over]);
      await Promise.race([lossOf(listen, () => forget(listen, channel, onNotify)), over]);
    } finally {
      leave(listen, channel, onNotify, subscription);
    }
  };
}
function lossOf({ sql: dedicated }, forget2) {
  return new Promise((_, reject) => {
    const options = dedicated?.options;
    const onclose = options?.onclose;
    if (options === void 0 || onclose === void 0) return;
    options.onclose = (...args) => {
      forget2();
      onclose(...args);
      reject(new Error("The connection that listens was closed"));
    };
  });
}
function forget({ channels }, channel, onNotify) {
  const entry = channels?.[channel];
  if (channels === void 0 || entry === void 0) return;
  entry.listeners = entry.listeners.filter(({ fn }) => fn !== onNotify);
  if (entry.listeners.length === 0) delete channels[channel];
}
function leave(listen, channel, onNotify, subscription) {
  const { sql: dedicated, channels } = listen;
  if (dedicated === void 0 || channels === void 0) {
    Promise.resolve(subscription?.unlisten()).catch(() => void 0);
    return;
  }
  forget(listen, channel, onNotify);
  if (Object.keys(channels).length > 0) return;
  listen.sql = void 0;
  delete dedicated.options.onclose;
  dedicated.end({ timeout: 0 }).catch(() => void 0);
}

// src/drivers/detect.ts
function listenOf(db) {
  const client = Reflect.get(db, "$client");
  if (typeof client === "function") {
    return "listen" in client ? listenByPostgresJs(client) : void 0;
  }
  if (typeof client !== "object" || client === null) return void 0;
  if ("listen" in client) return listenByPGlite(client);
  return listenByNodePostgres(client);
}

// src/drivers/prepared.ts
import { PgDialect } from "drizzle-orm/pg-core";
var REFUSED = /^(26000|42P05|0A000)$/;
var dialect = new PgDialect();
function preparing(db, onRefused) {
  const client = postgresJsClientOf(db);
  if (client === void 0) return db;
  let refused = false;
  return {
    async execute(query) {
      if (refused) return await db.execute(query);
      const { sql: sql34, params } = dialect.sqlToQuery(query.getSQL());
      try {
        return await client.unsafe(sql34, params, { prepare: true });
      } catch (error) {
        if (!REFUSED.test(sqlStateOf(error) ?? "")) throw error;
        if (!refused) onRefused(error);
        refused = true;
        return await db.execute(query);
      }
    }
  };
}
function postgresJsClientOf(db) {
  const client = Reflect.get(db, "$client");
  if (typeof client !== "function") return void 0;
  const { unsafe, listen, subscribe } = client;
  const isPostgresJs = [unsafe, listen, subscribe].every((method) => typeof method === "function");
  return isPostgresJs ? client : void 0;
}

// src/queries/check-database.ts
import { sql as sql17 } from "drizzle-orm";
import { getTableConfig as getTableConfig3 } from "drizzle-orm/pg-core";
var OLDEST_SUPPORTED = 14e4;
async function checkDatabase(db, tables2) {
  const [server] = await queryRows(db, tables2, serverVersionQuery);
  if (Number(server?.number) < OLDEST_SUPPORTED) throw new UnsupportedPostgresError(String(server?.version));
  for (const table of Object.values(tables2)) {
    const name = quotedName(table);
    const rows = await queryRows(db, tables2, columnsQuery(name));
    const present = new Set(rows.map((row) => row.name));
    if (present.size === 0) throw new MissingMigrationError(`The table ${name} does not exist`);
    const missing = getTableConfig3(table).columns.filter((column) => !present.has(column.name));
    if (missing.length > 0) {
      const names = missing.map((column) => column.name).join(", ");
      throw new MissingMigrationError(`The table ${name} has no column ${names}`);
    }
  }
}
var serverVersionQuery = sql17`
    select current_setting('server_version_num')::int4 as number, current_setting('server_version') as version`;
function columnsQuery(table) {
  return sql17`
    select attname as name from pg_attribute where attrelid = to_regclass(${table}) and attnum > 0 and not attisdropped`;
}

// src/queries/claim-jobs.ts
import { sql as sql19 } from "drizzle-orm";

// src/queries/plan-anew.ts
import { sql as sql18 } from "drizzle-orm";
function planAnew() {
  const one = sql18`generate_series(1, ${1}::int4)`;
  return sql18`${one} as a cross join ${one} as b cross join ${one} as c`;
}

// src/queries/claim-jobs.ts
var MAX_CLAIM_BYTES = 8 * 1024 * 1024;
async function claimJobs(db, tables2, claim) {
  const rows = await queryRows(db, tables2, claimJobsQuery(tables2, claim));
  return rows.sort(inClaimOrder).map((row) => toClaimedJob(row, claim.queue));
}
function sawTheEnd(limit, jobs) {
  if (jobs.length >= limit) return false;
  return jobs.reduce((bytes, { payloadBytes }) => bytes + payloadBytes, 0) < MAX_CLAIM_BYTES;
}
function claimJobsQuery({ queueJobs: queueJobs2, queueWorkers: queueWorkers2 }, claim) {
  const held = claim.fromGoneWorkers ? (
    // Never its own: a worker that was declared gone by mistake still runs what it holds.
    sql19`(j.worker_id is null or (j.worker_id is distinct from ${claim.workerId}::int8
            and j.worker_id not in (select w.id from ${queueWorkers2} as w)))`
  ) : sql19`j.worker_id is null`;
  return sql19`
    with due as (
      select j.id, j.bytes
      from ${planAnew()} cross join jsonb_to_recordset(${JSON.stringify(claim.bands.map(toBandRow))}::text::jsonb)
        as band(priority int2, floor timestamptz)
      cross join lateral (
        select j.id, pg_column_size(j.payload) as bytes from ${queueJobs2} as j
        where j.queue = ${claim.queue} and j.priority = band.priority and j.priority >= 0
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()
          and ${held}
          and j.kind = any(array(select jsonb_array_elements_text(${JSON.stringify(claim.kinds)}::text::jsonb)))
        order by j.run_at, j.id limit (select ${claim.limit}::int8)
        for no key update skip locked
      ) as j
      limit ${claim.limit}
    ),
    within as (
      select id from (select id, sum(bytes) over (rows between unbounded preceding and 1 preceding) as before from due) as d
      where before is null or before < ${MAX_CLAIM_BYTES}::int8
    )
    update ${queueJobs2} as j
    set attempt = j.attempt + 1, fence = j.fence + 1, worker_id = ${claim.workerId}::int8, claimed_at = statement_timestamp()
    where j.queue = ${claim.queue} and j.id = any(array(select id from within))
    returning j.id, j.kind, j.payload, pg_column_size(j.payload) as payload_bytes, j.priority,
      j.attempt, j.max_attempts, j.fence, j.unique_key, nullif(j.errors, '[]') as errors, nullif(j.metadata, '{}') as metadata, ${epochMs("j.run_at")} as run_at,
      ${epochMs("j.created_at")} as created_at, ${epochMs("j.claimed_at")} as claimed_at`;
}
function toBandRow({ priority, floorMs }) {
  return { priority, floor: Number.isFinite(floorMs) ? new Date(floorMs).toISOString() : "-infinity" };
}
function toClaimedJob(row, queue) {
  return {
    id: Number(row.id),
    queue,
    kind: String(row.kind),
    payload: row.payload,
    payloadBytes: Number(row.payload_bytes),
    priority: Number(row.priority),
    runAt: dateOf(row.run_at),
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    fence: Number(row.fence),
    uniqueKey: row.unique_key === null ? null : String(row.unique_key),
    // The two jsonb columns are written by us alone, in these shapes; empty ones, as nearly all are, travel as null.
    errors: row.errors ?? [],
    metadata: row.metadata ?? {},
    createdAt: dateOf(row.created_at),
    claimedAt: dateOf(row.claimed_at)
  };
}
function inClaimOrder(a, b) {
  return Number(a.priority) - Number(b.priority) || Number(a.run_at) - Number(b.run_at) || Number(a.id) - Number(b.id);
}

// src/queries/find-held-jobs.ts
import { sql as sql21 } from "drizzle-orm";

// src/queries/held.ts
import { sql as sql20 } from "drizzle-orm";
function stillHeld({ queue, workerId }) {
  return sql20`j.queue = ${queue} and j.id = any(array(select id from i))
        and j.worker_id is not distinct from ${workerId}::int8 and ((j.id, j.fence) in (select id, fence from i)) is true`;
}
function idsAndFences(jobs) {
  const ids = jobs.map(({ id }) => id);
  const fences = jobs.map(({ fence }) => fence);
  return sql20`unnest(${arrayText(ids)}::text::int8[]), unnest(${arrayText(fences)}::text::int4[])`;
}
function arrayText(values) {
  return `{${values.join(",")}}`;
}

// src/queries/find-held-jobs.ts
async function findHeldJobs(db, tables2, held, jobs) {
  const rows = await queryRows(db, tables2, findHeldJobsQuery(tables2, held, jobs));
  return new Map(rows.map((row) => [Number(row.id), Number(row.fence)]));
}
function findHeldJobsQuery({ queueJobs: queueJobs2 }, held, jobs) {
  return sql21`
    with i as materialized (select id, fence from rows from (${idsAndFences(jobs)}) as r(id, fence))
    select j.id, j.fence from ${queueJobs2} as j where ${stillHeld(held)}`;
}

// src/queries/release-jobs.ts
import { sql as sql22 } from "drizzle-orm";
async function releaseJobs(db, tables2, release) {
  const rows = await queryRows(db, tables2, releaseJobsQuery(tables2, release));
  return rows.length;
}
function releaseJobsQuery({ queueJobs: queueJobs2 }, release) {
  return sql22`
    update ${queueJobs2} as j
    set worker_id = null, claimed_at = null, attempt = j.attempt - 1
    where j.queue = ${release.queue} and j.worker_id = ${release.workerId}
      and j.id <> all(array(select jsonb_array_elements_text(${JSON.stringify(release.exceptIds)}::text::jsonb)::int8))
    returning j.id`;
}

// src/worker/alarm.ts
var Alarm = class {
  #rung = false;
  #end = () => void 0;
  ring() {
    this.#rung = true;
    this.#end();
  }
  /** Forgets a ring: what it told of is about to be looked at. */
  clear() {
    this.#rung = false;
  }
  /** Waits for a ring, at most `ms` milliseconds, which may be `Infinity`; answers whether it rang. */
  async pause(ms) {
    if (!this.#rung) {
      await new Promise((resolve) => {
        const timer = setTimeout(() => this.#end(), Math.min(ms, MAX_TIMER_MS));
        this.#end = () => {
          clearTimeout(timer);
          this.#end = () => void 0;
          resolve();
        };
      });
    }
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }
};

// src/job/transition.ts
function transitionFor(outcome, facts) {
  const { attempt, keepResult } = facts;
  switch (outcome.type) {
    case "completed":
      return {
        type: "finish",
        state: "completed",
        output: outcome.output,
        error: null,
        keepResult
      };
    case "failed": {
      const error = describeError(outcome.error, attempt);
      if (isNonRetryable(outcome.error) || attempt >= facts.maxAttempts) {
        return { type: "finish", state: "discarded", output: null, error, keepResult: true };
      }
      return {
        type: "reschedule",
        delayMs: backoffDelayMs(facts.backoff, attempt, outcome.error),
        attempt,
        error
      };
    }
    case "snoozed":
      return {
        type: "reschedule",
        delayMs: outcome.delayMs,
        attempt: attempt - 1,
        error: null
      };
    case "cancelled":
      return {
        type: "finish",
        state: "cancelled",
        output: null,
        error: { attempt, name: "Cancelled", message: storable(outcome.reason) },
        keepResult: true
      };
    case "interrupted":
      return { type: "reschedule", delayMs: null, attempt: attempt - 1, error: null };
  }
}
function isNonRetryable(thrown) {
  try {
    return thrown instanceof NonRetryableError;
  } catch {
    return false;
  }
}
var fallback = exponentialBackoff();
function backoffDelayMs(backoff, attempt, error) {
  try {
    const delayMs = backoff(attempt, error);
    if (typeof delayMs === "number" && delayMs >= 0) return Math.min(Math.round(delayMs), MAX_DELAY_MS);
  } catch {
  }
  return fallback(attempt, error);
}

// src/worker/announce.ts
function announce(events, attempt, outcome, settled) {
  const { job } = attempt;
  const { transition, written, durationMs } = settled;
  if (!written) {
    if (attempt.completeRan) events.emit("completed", { job, durationMs });
    else events.emit("lost", { job });
    return;
  }
  switch (outcome.type) {
    case "completed":
      events.emit("completed", { job, durationMs });
      return;
    case "failed": {
      const retryInMs = transition.type === "reschedule" ? transition.delayMs ?? 0 : void 0;
      events.emit("failed", { job, error: outcome.error, retryInMs });
      if (retryInMs === void 0) events.emit("discarded", { job, error: outcome.error });
      return;
    }
    case "snoozed":
      events.emit("snoozed", { job, delayMs: outcome.delayMs });
      return;
    case "cancelled":
      events.emit("cancelled", { job, reason: outcome.reason });
      return;
    case "interrupted":
      events.emit("interrupted", { job });
      return;
  }
}

// src/queries/finish-jobs.ts
import { sql as sql23 } from "drizzle-orm";
async function finishJobs(db, tables2, held, finishes) {
  const rows = await queryRows(db, tables2, finishJobsQuery(tables2, held, finishes));
  const lost = new Set(rows.map((row) => `${row.id}/${row.fence}`));
  const finished = finishes.filter(({ id, fence }) => lost.size === 0 || !lost.has(`${id}/${fence}`));
  return new Set(finished.map(({ id }) => id));
}
function finishJobsQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, held, finishes) {
  const lost = sql23`select id, fence from i where (id, fence) not in (select id, fence from finished)`;
  if (!finishes.some(({ transition }) => transition.keepResult)) {
    return sql23`
    with i as materialized (
      select id, fence from ${planAnew()} cross join rows from (${idsAndFences(finishes)}) as r(id, fence)
    ),
    finished as (
      delete from ${queueJobs2} as j
      where ${stillHeld(held)}
      returning j.id, j.fence
    )
    ${lost}`;
  }
  return sql23`
    with i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep, nullif(output, 'null') as output,
        ${withTime(sql23`nullif(error, 'null')`)} as error
      from ${planAnew()} cross join rows from (${idsAndFences(finishes)}, ${endings(finishes)}) as r(id, fence, state, keep, output, error)
    ),
    finished as (
      delete from ${queueJobs2} as j
      where ${stillHeld(held)}
      returning j.*
    ),
    recorded as (
      insert into ${queueResults2} (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority, fence,
        unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at)
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, ${withError(sql23`f.errors`, sql23`i.error`)}, f.attempt, f.max_attempts, f.priority, f.fence,
        f.unique_key, f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at, statement_timestamp()
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )
    ${lost}`;
}
function endings(finishes) {
  const transitions = finishes.map(({ transition }) => transition);
  const states = transitions.every(({ state }) => state === "completed") ? [] : transitions.map(({ state }) => state);
  const keeps = transitions.every(({ keepResult }) => keepResult) ? [] : transitions.map(({ keepResult }) => keepResult);
  const outputs = transitions.every(({ output }) => output === null || output === "null") ? [] : transitions.map(({ output }) => output ?? "null");
  const errors = transitions.every(({ error }) => error === null) ? [] : transitions.map(({ error }) => JSON.stringify(error));
  return sql23`unnest(${arrayText(states)}::text::text[]), unnest(${arrayText(keeps)}::text::bool[]),
        jsonb_array_elements(${`[${outputs.join(",")}]`}::text::jsonb), jsonb_array_elements(${`[${errors.join(",")}]`}::text::jsonb)`;
}

// src/worker/attempt.ts
var INTERRUPT_GRACE_MS = 1e3;
var Attempt = class {
  constructor(job, handler, environment) {
    this.job = job;
    this.handler = handler;
    this.environment = environment;
  }
  #controller;
  /** Why it was told to end. */
  #reason;
  /** Rejects `run`, while that waits for the handler. */
  #reject;
  #ended = false;
  #interrupted = false;
  #over = false;
  #completeRan = false;
  get signal() {
    if (this.#controller === void 0) {
      this.#controller = new AbortController();
      if (this.#reason !== void 0) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }
  /** Why the attempt was told to end, if it was: the reason of its signal. */
  get reason() {
    return this.#reason;
  }
  /** Whether the worker's stop has ended it. */
  get interrupted() {
    return this.#interrupted;
  }
  /** Whether `complete(tx)` has ended the job, provided that its transaction commits. */
  get completeRan() {
    return this.#completeRan;
  }
  get held() {
    return { queue: this.job.queue, workerId: this.environment.workerId };
  }
  get facts() {
    const { attempt, maxAttempts } = this.job;
    const { backoff, keepResult } = this.handler.job;
    return { attempt, maxAttempts, backoff, keepResult };
  }
  /**
   * Runs the handler. What it answers, when awaited, is the handler's result, or rejects as soon as the attempt is ended from outside,
   * whatever the handler goes on to do.
   *
   * @throws what a handler throws that is no async function
   */
  run(payload) {
    if (this.#ended) throw this.#reason;
    const returned = this.handler.run(new Context(this, payload, (tx, output) => this.#complete(tx, output)));
    if (!isPromiseLike(returned)) return returned;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      returned.then(resolve, reject);
    });
  }
  /** Ends the attempt at once: the signal is aborted with `reason`, and `run` rejects with it. */
  end(reason) {
    this.#abort(reason);
    this.#leave();
  }
  /** Ends the attempt because the worker stops; the handler gets a moment to return by itself. */
  interrupt(reason) {
    if (this.#over || this.#interrupted) return;
    this.#interrupted = true;
    this.#abort(reason);
    setTimeout(() => this.#leave(), INTERRUPT_GRACE_MS).unref();
  }
  #abort(reason) {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
  /** Waits for the handler no longer. */
  #leave() {
    this.#ended = true;
    if (this.#reason !== void 0) this.#reject?.(this.#reason);
  }
  /** From here on `complete` is refused: the attempt's end is decided. */
  close() {
    this.#over = true;
  }
  async #complete(tx, output) {
    const { job, handler, environment } = this;
    if (typeof tx?.rollback !== "function") {
      throw new TypeError(
        "complete(tx) takes a transaction, as db.transaction(async (tx) => \u2026) hands it over"
      );
    }
    this.#checkOpen();
    const json = await outputToStore(handler.job, output);
    await environment.checkTransaction?.(tx);
    this.#checkOpen();
    const transition = transitionFor({ type: "completed", output: json }, this.facts);
    if (transition.type !== "finish") throw new TypeError("A completed attempt finishes its job");
    this.#completeRan = true;
    try {
      const finished = await finishJobs(tx, environment.tables, this.held, [
        { id: job.id, fence: job.fence, transition }
      ]);
      if (!finished.has(job.id)) throw new LeaseLostError(job.kind, job.id);
    } catch (error) {
      if (error instanceof LeaseLostError) this.#completeRan = false;
      throw error;
    }
  }
  #checkOpen() {
    const { kind, id } = this.job;
    if (this.#over) throw new LeaseLostError(kind, id, "this attempt is already over");
    if (this.#completeRan) throw new LeaseLostError(kind, id, "complete has already been called");
  }
};
var Context = class _Context {
  constructor(attempt, payload, complete) {
    this.payload = payload;
    this.complete = complete;
    this.#attempt = attempt;
    this.job = attempt.job;
    this.db = attempt.environment.db;
    Object.defineProperty(this, "signal", _Context.#signal);
  }
  job;
  db;
  #attempt;
  static #signal = {
    enumerable: true,
    get() {
      return this.#attempt.signal;
    }
  };
};
function isPromiseLike(value) {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

// src/worker/execute-job.ts
async function executeJob(attempt) {
  const { job, handler } = attempt;
  if (job.attempt > job.maxAttempts) {
    return { type: "failed", error: new WorkerLostError(job.kind, job.id, job.maxAttempts) };
  }
  const { timeoutMs } = handler.job;
  const timer = timeoutMs === void 0 ? void 0 : setTimeout(() => attempt.end(new JobTimeoutError(job.kind, job.id, timeoutMs)), timeoutMs);
  try {
    const payload = handler.job.payload === void 0 ? void 0 : await payloadFromStore(handler.job, job.payload);
    const returned = await attempt.run(payload);
    return outcomeWithoutOutput(attempt, returned) ?? await completed(handler.job, returned);
  } catch (error) {
    if (attempt.interrupted) return { type: "interrupted" };
    return { type: "failed", error: attempt.reason ?? error };
  } finally {
    if (timer !== void 0) clearTimeout(timer);
    attempt.close();
  }
}
function outcomeWithoutOutput(attempt, returned) {
  if (returned instanceof Snooze) return { type: "snoozed", delayMs: returned.delayMs };
  if (returned instanceof Cancel) return { type: "cancelled", reason: returned.reason };
  const nothing = returned === void 0 && attempt.handler.job.output === void 0;
  if (attempt.completeRan || nothing) return { type: "completed", output: "null" };
  return void 0;
}
async function completed(job, returned) {
  return { type: "completed", output: await outputToStore(job, returned) };
}
function outcomeIfStillHeld(attempt, outcome) {
  if (!attempt.completeRan || outcome.type !== "completed") return outcome;
  const error = new QueueError("The transaction in which the handler called complete(tx) did not commit");
  return { type: "failed", error };
}

// src/worker/prefetch.ts
var HORIZON_MS = 50;
var MAX_PREFETCH = 1e3;
var MAX_BYTES = 8 * 1024 * 1024;
var WEIGHT = 0.05;
var MIN_ATTEMPTS = 5;
var Prefetch = class {
  #attempts = 0;
  #meanMs = 0;
  #recentBytes = 0;
  /** Learns from an attempt. */
  note(durationMs) {
    this.#attempts++;
    this.#meanMs += (durationMs - this.#meanMs) * Math.max(1 / this.#attempts, WEIGHT);
  }
  /** Learns from a claim. The largest counts for as long as it is remembered: memory is lost at once, and regained slowly. */
  noteClaimed(payloadBytes) {
    for (const bytes of payloadBytes) this.#recentBytes = Math.max(bytes, this.#recentBytes * (1 - WEIGHT));
  }
  /** The expectation was wrong: learns anew. */
  distrust() {
    this.#attempts = 0;
  }
  /** How many jobs to hold beyond the slots. */
  size(concurrency) {
    if (this.#attempts < MIN_ATTEMPTS) return 0;
    const byTime = concurrency * HORIZON_MS / Math.max(this.#meanMs, 0.01);
    const byMemory = MAX_BYTES / Math.max(this.#recentBytes, 1);
    return Math.floor(Math.min(byTime, byMemory, MAX_PREFETCH));
  }
};

// src/worker/attempts.ts
var MAX_UNSETTLED = 1e3;
var MAX_WAIT_MS = 500;
var Attempts = class {
  #options;
  #prefetch = new Prefetch();
  /** Claimed ahead, not begun. */
  #waiting = [];
  /** The handler runs. Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  #running = /* @__PURE__ */ new Set();
  /** The outcome is not written yet. */
  #unsettled = /* @__PURE__ */ new Set();
  #stopped = false;
  #patience;
  #lastBeganMs = 0;
  constructor(options) {
    this.#options = options;
  }
  /** How many jobs are held, in whatever stage. */
  get size() {
    return this.#waiting.length + this.#running.size + this.#unsettled.size;
  }
  /** The ids of all jobs that are held. */
  get ids() {
    return [...this.#waiting, ...this.#running, ...this.#unsettled].map(({ job }) => job.id);
  }
  /** How many jobs to claim now; 0 when there is enough to do. */
  get demand() {
    const { concurrency } = this.#options;
    if (this.#unsettled.size >= MAX_UNSETTLED) return 0;
    const ahead = this.#prefetch.size(concurrency);
    if (this.#waiting.length > ahead / 2) return 0;
    return concurrency + ahead - this.#running.size - this.#waiting.length;
  }
  /** Takes claimed jobs in, in their order. */
  add(jobs) {
    const { environment, handlers } = this.#options;
    this.#prefetch.noteClaimed(jobs.map(({ payloadBytes }) => payloadBytes));
    for (const job of jobs) {
      const handler = handlers.get(job.kind);
      if (handler === void 0)
        throw new TypeError(`Claimed a job of the kind '${job.kind}', which has no handler`);
      this.#waiting.push(new Attempt(job, handler, environment));
    }
    if (this.#stopped) {
      this.#giveBack(() => true);
      return;
    }
    this.#beginWaiting();
    if (this.#giveBack(({ job }) => !mayWait(job)) > 0) this.#prefetch.distrust();
  }
  /** Begins nothing more, and gives back what waits. What runs goes on. */
  stop() {
    this.#stopped = true;
    clearTimeout(this.#patience);
    this.#giveBack(() => true);
  }
  /** Tells every running handler that the worker stops. */
  interrupt(reason) {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }
  /** The jobs that wait or run, with their fences. */
  get unfinished() {
    return [...this.#waiting, ...this.#running].map(({ job }) => job);
  }
  /** Ends what is no longer held, given the fences of what still is, by id. */
  endLost(held) {
    const isLost = ({ job }) => held.get(job.id) !== job.fence;
    this.#waiting = this.#waiting.filter((attempt) => !isLost(attempt));
    for (const attempt of this.#running) {
      if (isLost(attempt)) attempt.end(new LeaseLostError(attempt.job.kind, attempt.job.id));
    }
  }
  #beginWaiting() {
    let began = false;
    while (this.#running.size < this.#options.concurrency) {
      const attempt = this.#waiting.shift();
      if (attempt === void 0) break;
      began = true;
      this.#running.add(attempt);
      void this.#execute(attempt);
    }
    if (began) this.#lastBeganMs = performance.now();
    if (this.#waiting.length > 0) this.#patience ??= setTimeout(() => this.#losePatience(), MAX_WAIT_MS);
  }
  /** One timer for all that waits, set again when it was too early: one per job would cost as much as the job. */
  #losePatience() {
    this.#patience = void 0;
    if (this.#waiting.length === 0) return;
    const waitedMs = performance.now() - this.#lastBeganMs;
    if (waitedMs < MAX_WAIT_MS) {
      this.#patience = setTimeout(() => this.#losePatience(), MAX_WAIT_MS - waitedMs);
      return;
    }
    this.#prefetch.distrust();
    this.#giveBack(() => true);
  }
  /** Puts waiting jobs back as they were before the claim; answers how many. */
  #giveBack(which) {
    const back = this.#waiting.filter(which);
    if (back.length === 0) return 0;
    this.#waiting = this.#waiting.filter((attempt) => !which(attempt));
    for (const attempt of back) {
      this.#unsettled.add(attempt);
      void this.#write(attempt, transitionFor({ type: "interrupted" }, attempt.facts)).catch((error) => this.#settlingFailed(attempt, error)).finally(() => this.#forget(attempt));
    }
    return back.length;
  }
  async #execute(attempt) {
    const startMs = performance.now();
    const outcome = outcomeIfStillHeld(attempt, await executeJob(attempt));
    const durationMs = performance.now() - startMs;
    this.#running.delete(attempt);
    this.#unsettled.add(attempt);
    this.#prefetch.note(durationMs);
    this.#beginWaiting();
    this.#announceChange();
    try {
      const transition = transitionFor(outcome, attempt.facts);
      const written = await this.#write(attempt, transition);
      announce(this.#options.events, attempt, outcome, { transition, written, durationMs });
    } catch (error) {
      await this.#settleRefused(attempt, error, durationMs);
    }
    this.#forget(attempt);
  }
  /** The database refuses the outcome itself (an output that is too large, say): then the attempt has failed. */
  async #settleRefused(attempt, refusal, durationMs) {
    const outcome = { type: "failed", error: refusal };
    const transition = transitionFor(outcome, attempt.facts);
    try {
      const written = await this.#write(attempt, transition);
      announce(this.#options.events, attempt, outcome, { transition, written, durationMs });
    } catch (error) {
      this.#settlingFailed(attempt, error);
    }
  }
  #settlingFailed({ job }, error) {
    this.#options.events.emit("error", { error, during: `settling job ${job.id} of '${job.queue}'` });
  }
  #forget(attempt) {
    this.#unsettled.delete(attempt);
    this.#announceChange();
  }
  /** Only when there is something to do about it: a claim to make, or an end to notice. */
  #announceChange() {
    if (this.size === 0 || this.demand > 0) this.#options.onChange();
  }
  #write(attempt, transition) {
    const { settler } = this.#options;
    const { id, fence } = attempt.job;
    const settlement = { id, fence, transition };
    return attempt.completeRan ? settler.settleAlone(settlement) : settler.settle(settlement);
  }
};
function mayWait({ attempt, maxAttempts, errors }) {
  const lastRecorded = errors.at(-1)?.attempt ?? 0;
  return attempt < maxAttempts && lastRecorded >= attempt - 1;
}

// src/worker/bands.ts
var SWEEP_SHARE = 20;
var MAX_SWEEP_PAUSE_MS = 5e3;
var CHEAP_SWEEP_MS = 25;
var EXPECTANT_SWEEP_SHARE = 4;
var COMMIT_ALLOWANCE_MS = 1e3;
var Bands = class {
  #floorMs = new Array(MAX_PRIORITY + 1).fill(Number.NEGATIVE_INFINITY);
  #nextSweepMs = Number.NEGATIVE_INFINITY;
  #nextCheapSweepMs = Number.NEGATIVE_INFINITY;
  /**
   * Whether the next claim should start from the very start.
   *
   * @param nowMs of any monotonic clock
   * @param expectant whether a job was told of and not found: it may have been enqueued long before its transaction committed
   */
  sweepIsDue(nowMs, expectant = false) {
    return nowMs >= (expectant ? this.#nextCheapSweepMs : this.#nextSweepMs);
  }
  /** Makes the next claim a sweep: something lies behind the floors, or nothing may be overlooked. */
  sweepNext() {
    this.#nextSweepMs = Number.NEGATIVE_INFINITY;
    this.#nextCheapSweepMs = Number.NEGATIVE_INFINITY;
  }
  /** The bands of the next claim. */
  of(sweep) {
    return this.#floorMs.map((floorMs, priority) => ({
      priority,
      floorMs: sweep ? Number.NEGATIVE_INFINITY : floorMs
    }));
  }
  /** Where a look at all priorities together starts. */
  get lowestFloorMs() {
    return Math.min(...this.#floorMs);
  }
  /** Learns from a claim. */
  note({ jobs, short, sweep, startMs, endMs }) {
    const last = jobs.at(-1);
    for (const [index3, { priority, runAt }] of jobs.entries()) {
      if (jobs[index3 - 1]?.priority !== priority) this.#floorMs[priority] = Math.floor(runAt.getTime());
    }
    if (last !== void 0) this.#raise(last.claimedAt.getTime(), short ? MAX_PRIORITY + 1 : last.priority);
    if (sweep) this.#swept(startMs, endMs);
  }
  /** Learns from a look that saw everything due at `databaseMs` and found nothing to claim. */
  noteNothing(databaseMs, sweep, startMs, endMs) {
    this.#raise(databaseMs, MAX_PRIORITY + 1);
    if (sweep) this.#swept(startMs, endMs);
  }
  #raise(databaseMs, end) {
    this.#floorMs.fill(Math.floor(databaseMs) - COMMIT_ALLOWANCE_MS, 0, end);
  }
  #swept(startMs, endMs) {
    const tookMs = endMs - startMs;
    this.#nextSweepMs = endMs + Math.min(tookMs * SWEEP_SHARE, MAX_SWEEP_PAUSE_MS);
    this.#nextCheapSweepMs = tookMs <= CHEAP_SWEEP_MS ? endMs + tookMs * EXPECTANT_SWEEP_SHARE : this.#nextSweepMs;
  }
};

// src/worker/jittered.ts
function jittered(ms) {
  return ms * (0.75 + Math.random() / 2);
}

// src/worker/lost-answers.ts
var SUSPECT_MS = 6e4;
var RELEASE_EVERY_MS = 5e3;
var LostAnswers = class {
  #suspectUntilMs = 0;
  #nextReleaseMs = 0;
  /** A claim's answer was lost. `nowMs` is any monotonic clock. */
  note(nowMs) {
    this.#suspectUntilMs = nowMs + SUSPECT_MS;
  }
  releaseIsDue(nowMs) {
    return nowMs <= this.#suspectUntilMs && nowMs >= this.#nextReleaseMs;
  }
  noteRelease(nowMs) {
    this.#nextReleaseMs = nowMs + RELEASE_EVERY_MS;
  }
};

// src/worker/pace.ts
var MIN_GAP_MS = 2;
var HOT_MS = 300;
var GAP_SHARE = 4;
var Pace = class {
  #maxGapMs;
  #lastMs = Number.NEGATIVE_INFINITY;
  constructor(maxGapMs) {
    this.#maxGapMs = maxGapMs;
  }
  /** A job was found, or told of. `nowMs` is any monotonic clock. */
  note(nowMs) {
    this.#lastMs = nowMs;
  }
  /** How long to wait before the next look; `undefined` when the queue is hot no more. */
  gapMs(nowMs) {
    const sinceMs = nowMs - this.#lastMs;
    if (sinceMs >= HOT_MS) return void 0;
    return Math.min(Math.max(sinceMs / GAP_SHARE, MIN_GAP_MS), this.#maxGapMs);
  }
};

// src/queries/reschedule-jobs.ts
import { sql as sql24 } from "drizzle-orm";
async function rescheduleJobs(db, tables2, held, reschedules) {
  const rows = await queryRows(db, tables2, rescheduleJobsQuery(tables2, held, reschedules));
  return new Set(rows.map((row) => Number(row.id)));
}
function rescheduleJobsQuery({ queueJobs: queueJobs2 }, held, reschedules) {
  const transitions = reschedules.map(({ transition }) => transition);
  return sql24`
    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        ${withTime(sql24`nullif(error, 'null')`)} as error
      from ${planAnew()} cross join rows from (${idsAndFences(reschedules)}, unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? "null"))}::text::float8[]),
        jsonb_array_elements(${JSON.stringify(transitions.map(({ error }) => error))}::text::jsonb)) as r(id, fence, attempt, delay_ms, error)
    )
    update ${queueJobs2} as j
    set worker_id = null, claimed_at = null, attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      errors = ${withError(sql24`j.errors`, sql24`i.error`)}
    from i
    where i.id = j.id and i.fence = j.fence and ${stillHeld(held)}
    returning j.id`;
}

// src/worker/settle-jobs.ts
var MAX_BATCH = 500;
var MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;
var FIRST_RETRY_MS = 100;
var MAX_RETRY_MS = 5e3;
var Settler = class {
  constructor(db, tables2, held, events, giveUp) {
    this.db = db;
    this.tables = tables2;
    this.held = held;
    this.events = events;
    this.giveUp = giveUp;
  }
  #waiting = [];
  #writing;
  /**
   * Writes one transition, in a batch with others. Answers whether it took effect: not when the job is no longer held under
   * this fence.
   *
   * @throws what the database says about this row
   */
  settle({ id, fence, transition }) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, fence, transition, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }
  /**
   * The same in a statement of its own: for a job whose row the handler's own transaction may have locked, so that the others
   * need not wait for that transaction.
   */
  async settleAlone(settlement) {
    const written = await this.#repeat([settlement]);
    return written.has(settlement.id);
  }
  async #writeAll() {
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) await this.#write(this.#nextBatch());
    this.#writing = void 0;
  }
  /**
   * The next rows, each job once: its answer is told by its id, and a lost attempt may end together with a newer one. And no
   * more output than one parameter carries well.
   */
  #nextBatch() {
    const batch = /* @__PURE__ */ new Map();
    const again = [];
    let at = 0;
    for (let characters = 0; at < this.#waiting.length && batch.size < MAX_BATCH; at++) {
      const waiting = this.#waiting[at];
      if (waiting === void 0) break;
      characters += outputLength(waiting.transition);
      if (characters > MAX_BATCH_CHARACTERS && batch.size > 0) break;
      if (batch.has(waiting.id)) again.push(waiting);
      else batch.set(waiting.id, waiting);
    }
    this.#waiting = [...again, ...this.#waiting.slice(at)];
    return [...batch.values()];
  }
  async #write(batch) {
    try {
      const written = await this.#repeat(batch);
      for (const { id, resolve } of batch) resolve(written.has(id));
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const one of batch) await this.#write([one]);
    }
  }
  /** Writes a batch, again and again while the reason to fail is not in it; answers the ids that took effect. */
  async #repeat(batch) {
    for (let delayMs = FIRST_RETRY_MS; ; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      try {
        return await this.#writeOnce(batch);
      } catch (error) {
        if (isAboutTheData(error) || this.giveUp.aborted) throw error;
        this.events.emit("error", { error, during: `settling ${batch.length} jobs of '${this.held.queue}'` });
        await pause(delayMs, this.giveUp);
      }
    }
  }
  async #writeOnce(batch) {
    const { db, tables: tables2, held } = this;
    const finishes = batch.filter(isFinish);
    const reschedules = batch.filter(isReschedule);
    const finished = finishes.length === 0 ? [] : await finishJobs(db, tables2, held, finishes);
    const rescheduled = reschedules.length === 0 ? [] : await rescheduleJobs(db, tables2, held, reschedules);
    return /* @__PURE__ */ new Set([...finished, ...rescheduled]);
  }
};
function outputLength(transition) {
  return transition.type === "finish" ? transition.output?.length ?? 0 : 0;
}
function isFinish(settlement) {
  return settlement.transition.type === "finish";
}
function isReschedule(settlement) {
  return settlement.transition.type === "reschedule";
}
function isAboutTheData(error) {
  return /^(22|23|54)/.test(sqlStateOf(error) ?? "");
}

// src/worker/claim-loop.ts
var MAX_ERROR_PAUSE_MS = 5e3;
var MAX_EXPECTED_MS = 2e3;
var ClaimLoop = class {
  #options;
  #held;
  bands = new Bands();
  #pace;
  #attempts;
  #stopping = new AbortController();
  /** Rings when there may be something to claim. */
  #alarm = new Alarm();
  #changed = () => void 0;
  #foundNothing = false;
  /** Whether the queue was announced idle, and no job was found since. */
  #announced = false;
  /** The loop waits without a time at which it looks by itself. */
  #atRest = false;
  /** Jobs or notifications have come since the queue was last idle. */
  #eventful = true;
  /** Whether a notification has come that no job has answered yet. */
  #expectant = false;
  #lostAnswers = new LostAnswers();
  constructor(options) {
    this.#options = options;
    const { environment, runner, queue, handlers, concurrency, events, giveUp } = options;
    const { tables: tables2, workerId } = environment;
    this.#held = { queue, workerId };
    this.#pace = new Pace(options.pollIntervalMs);
    this.#attempts = new Attempts({
      environment,
      handlers,
      concurrency,
      settler: new Settler(runner, tables2, this.#held, events, giveUp),
      events,
      onChange: () => {
        this.#changed();
        this.#lookAfterLast();
      }
    });
    events.on("failed", ({ job, retryInMs }) => this.#expect(job, retryInMs));
    events.on("snoozed", ({ job, delayMs }) => this.#expect(job, delayMs));
    events.on("interrupted", ({ job }) => {
      if (job.queue !== queue) return;
      this.bands.sweepNext();
      this.wake();
    });
  }
  get queue() {
    return this.#options.queue;
  }
  /** Claims soon. */
  wake() {
    this.#alarm.ring();
  }
  /** Claims at once, and stays hot: others may follow that do not notify. */
  notify() {
    this.#eventful = true;
    this.#expectant = true;
    this.#pace.note(performance.now());
    this.#alarm.ring();
  }
  /** Claims until `stop` is called (or nothing is left, without a watch); answers how many jobs. Never rejects. */
  async run() {
    const { queue, pollIntervalMs, events, watch } = this.#options;
    let failures = 0;
    let total = 0;
    while (!this.#stopping.signal.aborted) {
      const { demand } = this.#attempts;
      if (demand <= 0) {
        await this.#change();
        continue;
      }
      this.#alarm.clear();
      const sweep = this.bands.sweepIsDue(performance.now(), this.#expectant);
      let claimed;
      try {
        claimed = await this.#claim(demand, sweep);
        total += claimed;
        failures = 0;
      } catch (error) {
        events.emit("error", { error, during: `claiming from '${queue}'` });
        const pauseMs = Math.min(pollIntervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS);
        await pause(jittered(pauseMs), this.#stopping.signal);
        continue;
      }
      if (claimed >= demand) continue;
      if (watch === void 0 && this.#foundNothing) {
        if (sweep) return total;
        this.bands.sweepNext();
        continue;
      }
      await this.#rest();
    }
    return total;
  }
  /** Claims no more, and gives back what has not begun. Handlers go on. */
  stop() {
    this.#stopping.abort();
    this.#attempts.stop();
    this.#changed();
    this.#alarm.ring();
  }
  /** Resolves when no handler runs and every outcome is written. */
  async finished() {
    while (this.#attempts.size > 0) await this.#change();
  }
  /** Tells every running handler that the worker stops. */
  interrupt(reason) {
    this.#attempts.interrupt(reason);
  }
  /** Gives back whatever this worker holds here without knowing: after a claim whose answer was lost, and at the very end. */
  async release() {
    const { db, tables: tables2 } = this.#options.environment;
    await releaseJobs(db, tables2, { ...this.#held, exceptIds: this.#attempts.ids });
  }
  /** Ends the attempts whose jobs are no longer held: after this worker was declared gone for a while. */
  async endLostAttempts() {
    const { unfinished } = this.#attempts;
    if (unfinished.length === 0) return;
    const { db, tables: tables2 } = this.#options.environment;
    this.#attempts.endLost(await findHeldJobs(db, tables2, this.#held, unfinished));
  }
  async #claim(limit, sweep) {
    const { environment, runner, queue, handlers, events } = this.#options;
    const startMs = performance.now();
    if (this.#lostAnswers.releaseIsDue(startMs)) {
      await this.release();
      this.#lostAnswers.noteRelease(startMs);
    }
    const quiet = this.#attempts.size === 0;
    const told = this.#expectant;
    this.#expectant = false;
    const jobs = await claimJobs(runner, environment.tables, {
      ...this.#held,
      kinds: [...handlers.keys()],
      bands: this.bands.of(sweep),
      limit,
      fromGoneWorkers: sweep
    }).catch((error) => {
      this.#lostAnswers.note(performance.now());
      throw error;
    });
    const endMs = performance.now();
    this.bands.note({ jobs, short: sawTheEnd(limit, jobs), sweep, startMs, endMs });
    if (told && !sweep && jobs.length === 0) this.#expectant = true;
    if (jobs.length > 0) {
      this.#announced = false;
      this.#eventful = true;
      this.#pace.note(endMs);
      events.emit("claimed", { queue, count: jobs.length, durationMs: endMs - startMs });
    }
    this.#attempts.add(jobs);
    this.#foundNothing = quiet && jobs.length === 0;
    if (this.#foundNothing && !this.#announced) events.emit("idle", { queue });
    this.#announced ||= this.#foundNothing;
    return jobs.length;
  }
  /** Waits until another claim is worth its statement. */
  async #rest() {
    const { watch, pollIntervalMs } = this.#options;
    const gapMs = this.#pace.gapMs(performance.now());
    if (gapMs !== void 0 && watch !== void 0) return void await this.#alarm.pause(gapMs);
    watch?.add(this, this.#eventful);
    this.#eventful = false;
    this.#atRest = true;
    this.#lookAfterLast();
    await this.#alarm.pause(watch === void 0 ? pollIntervalMs : Number.POSITIVE_INFINITY);
    this.#atRest = false;
    watch?.remove(this);
  }
  /** When the last job has ended it is time for another claim: it may have left one, and if not, the queue is idle. */
  #lookAfterLast() {
    if (this.#atRest && !this.#announced && this.#attempts.size === 0) this.wake();
  }
  #expect(job, inMs) {
    if (job.queue !== this.queue || inMs === void 0 || inMs > MAX_EXPECTED_MS) return;
    this.#options.watch?.expect(this, inMs);
  }
  /** Waits until a slot is free or an outcome is written, or the loop is stopped. */
  async #change() {
    await new Promise((resolve) => {
      const others = this.#changed;
      this.#changed = () => {
        this.#changed = () => void 0;
        others();
        resolve();
      };
    });
  }
};

// src/worker/handler.ts
function handle(job, run) {
  checkDefinition("handle", job);
  if (typeof run !== "function") throw new TypeError(`handle('${job.kind}') takes a function`);
  return { job, run };
}
function handlersByKind(handlers) {
  if (handlers.length === 0)
    throw new UnknownKindError("A worker needs at least one handler: handle(job, function)");
  const byKind = /* @__PURE__ */ new Map();
  for (const handler of handlers) {
    const { kind } = handler.job;
    if (byKind.has(kind)) throw new UnknownKindError(`There are two handlers for the kind '${kind}'`);
    byKind.set(kind, handler);
  }
  return byKind;
}

// src/queries/notify-workers.ts
import { sql as sql25 } from "drizzle-orm";
async function notifyWorkers(db, tables2, payload) {
  await queryRows(db, tables2, notifyWorkersQuery(tables2, payload));
}
function notifyWorkersQuery(tables2, payload) {
  return sql25`select pg_notify(${wakeChannel(tables2)}, ${payload})`;
}

// src/worker/within.ts
async function within(promise, ms) {
  const timeout = new AbortController();
  const done = promise.then(() => true);
  const late = pause(ms, timeout.signal).then(() => false);
  const result = await Promise.race([done, late]);
  timeout.abort();
  return result;
}

// src/worker/listener.ts
var ECHO_MS = 5e3;
var QUIET_MS = 6e4;
var FIRST_RETRY_MS2 = 100;
var MAX_RETRY_MS2 = 6e4;
var CLOSE_MS = 1e3;
var Listener = class {
  #options;
  #stopping = new AbortController();
  #session;
  #listening = false;
  /** How often in a row listening has ended, or could not begin. */
  #failures = 0;
  #over = Promise.resolve();
  constructor(options) {
    this.#options = options;
  }
  /** Whether notifications are known to arrive. */
  get listening() {
    return this.#listening;
  }
  start() {
    const { listen, events } = this.#options;
    if (listen === void 0) events.emit("polling", { error: void 0 });
    else this.#over = this.#keepListening(listen);
  }
  /** Ends at once, and waits a moment for the connection to close. Never rejects. */
  async stop() {
    this.#stopping.abort();
    this.#listening = false;
    this.#session?.abort();
    await within(this.#over, CLOSE_MS);
  }
  async #keepListening(listen) {
    while (!this.#stopping.signal.aborted) {
      const session = new AbortController();
      this.#session = session;
      const heard = new Alarm();
      let tested = false;
      let error;
      try {
        await listen(
          wakeChannel(this.#options.tables),
          {
            ready: () => {
              this.#options.onWake(void 0);
              if (!tested) void this.#test(session, heard);
              tested = true;
            },
            notify: (payload) => {
              heard.ring();
              this.#options.onWake(payload);
            }
          },
          session.signal
        );
        error = session.signal.reason;
      } catch (thrown) {
        error = thrown;
      }
      session.abort();
      heard.ring();
      if (this.#stopping.signal.aborted) return;
      this.#lose(error);
      const retryMs = Math.min(FIRST_RETRY_MS2 * 2 ** this.#failures++, MAX_RETRY_MS2);
      await pause(jittered(retryMs), this.#stopping.signal);
    }
  }
  /** From now on the worker polls. */
  #lose(error) {
    const { events } = this.#options;
    if (this.#failures === 0) events.emit("error", { error, during: "listening" });
    if (this.#listening || this.#failures === 0) events.emit("polling", { error });
    this.#listening = false;
  }
  /** Sends notifications to itself, now and whenever it has been quiet for long, until one does not come back. */
  async #test(session, heard) {
    const { db, tables: tables2, events } = this.#options;
    const { signal } = session;
    try {
      while (!signal.aborted) {
        heard.clear();
        await notifyWorkers(db, tables2, `test of ${crypto.randomUUID()}`);
        if (!await heard.pause(ECHO_MS) && !signal.aborted) throw notHeard();
        if (signal.aborted) return;
        this.#failures = 0;
        if (!this.#listening) {
          this.#listening = true;
          events.emit("listening");
        }
        while (!signal.aborted) if (!await heard.pause(jittered(QUIET_MS))) break;
      }
    } catch (error) {
      session.abort(error);
    }
  }
};
function notHeard() {
  return new QueueError(
    "A notification to itself did not reach this worker, so it polls. Behind PgBouncer in transaction mode none ever does: set listen: false"
  );
}

// src/queries/beat-worker.ts
import { sql as sql26 } from "drizzle-orm";
async function beatWorker(db, tables2, worker) {
  const [row] = await queryRows(db, tables2, beatWorkerQuery(tables2, worker));
  return row?.anew === true;
}
function beatWorkerQuery({ queueWorkers: queueWorkers2 }, { id, name, queues }) {
  return sql26`
    insert into ${queueWorkers2} as w (id, name, queues) overriding system value
    values (${id}, ${name}, ${JSON.stringify(queues)}::text::jsonb)
    on conflict (id) do update set seen_at = statement_timestamp()
    returning (w.xmax = 0) as anew`;
}

// src/queries/register-worker.ts
import { sql as sql27 } from "drizzle-orm";
async function registerWorker(db, tables2, worker) {
  const [row] = await queryRows(db, tables2, registerWorkerQuery(tables2, worker));
  return Number(row?.id);
}
function registerWorkerQuery({ queueWorkers: queueWorkers2 }, { name, queues }) {
  return sql27`
    insert into ${queueWorkers2} (name, queues) values (${name}, ${JSON.stringify(queues)}::text::jsonb) returning id`;
}

// src/queries/remove-silent-workers.ts
import { sql as sql28 } from "drizzle-orm";
async function removeSilentWorkers(db, tables2, silentMs) {
  const rows = await queryRows(db, tables2, removeSilentWorkersQuery(tables2, silentMs));
  return rows.map((row) => String(row.name));
}
function removeSilentWorkersQuery({ queueWorkers: queueWorkers2 }, silentMs) {
  return sql28`
    with silent as (
      select w.id from ${queueWorkers2} as w
      where w.seen_at < statement_timestamp() - ${silentMs}::float8 * interval '1 millisecond'
      for update skip locked
    )
    delete from ${queueWorkers2} as w where w.id = any(array(select id from silent))
    returning w.name`;
}

// src/queries/remove-worker.ts
import { sql as sql29 } from "drizzle-orm";
async function removeWorker(db, tables2, id) {
  await queryRows(db, tables2, removeWorkerQuery(tables2, id));
}
function removeWorkerQuery({ queueWorkers: queueWorkers2 }, id) {
  return sql29`delete from ${queueWorkers2} as w where w.id = ${id}`;
}

// src/worker/liveness.ts
var HEARTBEAT_MS = 5e3;
var Liveness = class {
  #options;
  #stopping = new AbortController();
  #workerId;
  #beating = Promise.resolve();
  constructor(options) {
    this.#options = options;
  }
  /** Registers; answers the worker's id. */
  async start() {
    const { db, tables: tables2, name, queues } = this.#options;
    const id = await registerWorker(db, tables2, { name, queues });
    this.#workerId = id;
    this.#beating = this.#beat(id);
    return id;
  }
  /** Takes the worker out of the living. */
  async stop() {
    this.#stopping.abort();
    await this.#beating;
    if (this.#workerId !== void 0)
      await removeWorker(this.#options.db, this.#options.tables, this.#workerId);
  }
  async #beat(id) {
    const { db, tables: tables2, name, queues, silentMs, events, onDeclaredGone } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        if (await beatWorker(db, tables2, { id, name, queues })) await onDeclaredGone();
        await removeSilentWorkers(db, tables2, silentMs);
      } catch (error) {
        events.emit("error", { error, during: "the heartbeat" });
      }
      await pause(HEARTBEAT_MS, this.#stopping.signal);
    }
  }
};

// src/queries/prune-results.ts
import { sql as sql30 } from "drizzle-orm";
async function pruneResults(db, tables2, prune) {
  const rows = await queryRows(db, tables2, pruneResultsQuery(tables2, prune));
  return Number(rows[0]?.pruned);
}
function pruneResultsQuery({ queueResults: queueResults2 }, { retentionMs, limit }) {
  return sql30`
    with expired as (
      select r.job_id, r.queue from ${queueResults2} as r
      where r.finished_at < statement_timestamp() - ${retentionMs}::float8 * interval '1 millisecond'
      order by r.finished_at limit ${limit}
      for update skip locked
    ),
    pruned as (
      delete from ${queueResults2} as r
      where (r.job_id, r.queue) in (select job_id, queue from expired)
      returning 1
    )
    select count(*)::float8 as pruned from pruned`;
}

// src/worker/prune.ts
var PRUNE_EVERY_MS = 6e4;
var BATCH = 1e3;
async function pruneLoop({ db, tables: tables2, retentionMs, events }, signal) {
  if (retentionMs === Number.POSITIVE_INFINITY) return;
  while (!signal.aborted) {
    let pruned = 0;
    try {
      pruned = await pruneResults(db, tables2, { retentionMs, limit: BATCH });
    } catch (error) {
      events.emit("error", { error, during: "pruning results" });
    }
    if (pruned < BATCH) await pause(PRUNE_EVERY_MS * (0.75 + Math.random() / 2), signal);
  }
}

// src/queries/find-due.ts
import { sql as sql31 } from "drizzle-orm";
async function findDue(runner, tables2, question) {
  const rows = await queryRows(runner, tables2, findDueQuery(tables2, question));
  return rows.map((row) => ({
    queue: String(row.queue),
    dueInMs: row.due_at === null ? void 0 : Number(row.due_at) - Number(row.now),
    nowMs: Number(row.now)
  }));
}
function findDueQuery({ queueJobs: queueJobs2, queueWorkers: queueWorkers2 }, question) {
  return sql31`
    select i.queue, min(${epochMs("j.run_at")}) as due_at, ${epochMs("statement_timestamp()")} as now
    from ${planAnew()} cross join jsonb_to_recordset(${JSON.stringify(question.looks.map(toLookRow))}::text::jsonb)
      as i(queue text, floor timestamptz, sweep bool)
    cross join generate_series(0, ${sql31.raw(String(MAX_PRIORITY))}) as band(priority)
    left join lateral (
      select j.run_at from ${queueJobs2} as j
      where j.queue = i.queue and j.priority = band.priority::int2 and j.priority >= 0
        and j.run_at >= i.floor
        and j.run_at <= statement_timestamp() + ${question.horizonMs}::float8 * interval '1 millisecond'
        and (j.worker_id is null or (i.sweep and j.worker_id is distinct from ${question.workerId}::int8
          and j.worker_id not in (select w.id from ${queueWorkers2} as w)))
        and j.kind = any(array(select jsonb_array_elements_text(${JSON.stringify(question.kinds)}::text::jsonb)))
      order by j.run_at, j.id limit 1
    ) as j on true
    group by i.queue`;
}
function toLookRow({ queue, floorMs, fromGoneWorkers }) {
  const floor = Number.isFinite(floorMs) ? new Date(floorMs).toISOString() : "-infinity";
  return { queue, floor, sweep: fromGoneWorkers };
}

// src/worker/watch.ts
var GATHER_MS = 10;
var MAX_ERROR_PAUSE_MS2 = 5e3;
var Watch = class {
  #options;
  #idle = /* @__PURE__ */ new Set();
  #timers = /* @__PURE__ */ new Map();
  #alarm = new Alarm();
  #stopping = new AbortController();
  constructor(options) {
    this.#options = options;
  }
  /**
   * Watches a queue until something may be due in it.
   *
   * @param anew whether it was busy, and is to be looked at without delay. A queue that was woken in vain is not: what made it look due
   *   (a job that is locked by an open transaction, say) would do so again.
   */
  add(idle, anew) {
    this.#idle.add(idle);
    if (anew) this.#alarm.ring();
  }
  remove(idle) {
    this.#idle.delete(idle);
  }
  /** Looks now: the interval has become another. */
  look() {
    this.#alarm.ring();
  }
  /** Wakes a queue in so many milliseconds, when one of its jobs is known to be due. */
  expect(idle, inMs) {
    if (this.#stopping.signal.aborted) return;
    clearTimeout(this.#timers.get(idle));
    const timer = setTimeout(() => idle.wake(), Math.ceil(inMs) + 1);
    this.#timers.set(idle, timer);
  }
  async run() {
    let failures = 0;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await pause(GATHER_MS, signal);
      this.#alarm.clear();
      let pauseMs = Number.POSITIVE_INFINITY;
      if (this.#idle.size > 0) {
        const intervalMs = this.#options.intervalMs();
        pauseMs = jittered(intervalMs);
        try {
          await this.#look(intervalMs);
          failures = 0;
        } catch (error) {
          this.#options.events.emit("error", { error, during: "looking for due jobs" });
          pauseMs = jittered(Math.min(intervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS2));
        }
      }
      if (!signal.aborted) await this.#alarm.pause(pauseMs);
    }
  }
  stop() {
    this.#stopping.abort();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#alarm.ring();
  }
  async #look(intervalMs) {
    const { runner, tables: tables2, workerId, kinds } = this.#options;
    const startMs = performance.now();
    const looks = new Map(
      [...this.#idle].map((idle) => {
        const sweep = idle.bands.sweepIsDue(startMs);
        return [
          idle.queue,
          { idle, sweep, floorMs: sweep ? Number.NEGATIVE_INFINITY : idle.bands.lowestFloorMs }
        ];
      })
    );
    const answers = await findDue(runner, tables2, {
      looks: [...looks].map(([queue, { floorMs, sweep }]) => ({ queue, floorMs, fromGoneWorkers: sweep })),
      kinds,
      workerId,
      // What becomes due before the next look, with room for its jitter.
      horizonMs: intervalMs * 2
    });
    const endMs = performance.now();
    for (const answer of answers) {
      const look = looks.get(answer.queue);
      if (look !== void 0) this.#heed(look, answer, startMs, endMs);
    }
  }
  #heed({ idle, sweep }, answer, startMs, endMs) {
    const { dueInMs, nowMs } = answer;
    if (!this.#idle.has(idle)) return;
    if (dueInMs !== void 0 && dueInMs <= 0) {
      if (sweep) idle.bands.sweepNext();
      idle.wake();
      return;
    }
    idle.bands.noteNothing(nowMs, sweep, startMs, endMs);
    if (dueInMs !== void 0) this.expect(idle, dueInMs);
  }
};

// src/worker/worker-events.ts
var WorkerEmitter = class {
  #listeners = /* @__PURE__ */ new Map();
  on(event, listener) {
    this.#listeners.set(event, this.#of(event).add(listener));
  }
  off(event, listener) {
    this.#of(event).delete(listener);
  }
  emit(event, ...args) {
    const listeners = this.#listeners.get(event);
    if (listeners === void 0 || listeners.size === 0) {
      if (event === "error") console.error("drizzle-queue worker:", ...args);
      return;
    }
    for (const listener of [...listeners]) {
      try {
        listener(...args);
      } catch (error) {
        if (event === "error") console.error("drizzle-queue worker: an error listener threw", error);
        else this.emit("error", { error, during: `a listener of '${event}'` });
      }
    }
  }
  /** A map cannot say that the listeners under a key are that key's; `on` is the only way in. */
  #of(event) {
    return this.#listeners.get(event) ?? /* @__PURE__ */ new Set();
  }
};

// src/worker/worker-options.ts
import { hostname } from "node:os";
var DEFAULT_CONCURRENCY = 10;
var WEEK_MS = 7 * 24 * 36e5;
function workerSettings(options) {
  const what = (setting) => `createWorker: ${setting}`;
  const { retentionMs = WEEK_MS } = options;
  return {
    concurrencyByQueue: concurrencyByQueue(options.handlers, options.queues),
    listen: options.listen ?? true,
    pollIntervalMs: checkDurationMs(what("pollIntervalMs"), options.pollIntervalMs ?? 75, 5, 6e4),
    shutdownTimeoutMs: checkDurationMs(
      what("shutdownTimeoutMs"),
      options.shutdownTimeoutMs ?? 25e3,
      0,
      36e5
    ),
    retentionMs: retentionMs === Number.POSITIVE_INFINITY ? retentionMs : checkDurationMs(what("retentionMs"), retentionMs, 0, MAX_DELAY_MS),
    silentMs: checkDurationMs(what("silentMs"), options.silentMs ?? 3e4, 15e3, 36e5),
    name: checkText2(what("name"), options.name ?? `${hostname()}:${process.pid}`, MAX_NAME_BYTES)
  };
}
function concurrencyByQueue(handlers, queues) {
  const named = new Set(handlers.map(({ job }) => job.queue));
  if (queues === void 0) return new Map([...named].map((queue) => [queue, DEFAULT_CONCURRENCY]));
  const served = Object.entries(queues).map(
    ([queue, { concurrency = DEFAULT_CONCURRENCY }]) => [
      checkText2("createWorker: the name of a queue", queue, MAX_NAME_BYTES),
      checkInteger(`createWorker: queues['${queue}'].concurrency`, concurrency, 1, 1e4)
    ]
  );
  if (served.length === 0)
    throw new TypeError("createWorker: queues names no queue; leave it out to serve all");
  for (const { job } of handlers) {
    if (queues[job.queue] === void 0) {
      process.emitWarning(
        `This worker has a handler for '${job.kind}', whose queue '${job.queue}' is not among its queues: ${Object.keys(queues).join(", ")}`,
        "DrizzleQueueWarning"
      );
    }
  }
  return new Map(served);
}

// src/worker/worker.ts
var SETTLE_ALLOWANCE_MS = 5e3;
var WATCH_MS = 800;
var Worker = class {
  #db;
  #tables;
  #handlers;
  #settings;
  #untilEmpty;
  #events = new WorkerEmitter();
  #liveness;
  #listener;
  /** Ends the pruning. */
  #stopping = new AbortController();
  /** Ends the settling, at the very last. */
  #giveUp = new AbortController();
  #stopped;
  #markStopped = () => void 0;
  #loops = [];
  #watch;
  #work = Promise.resolve();
  #starting;
  #stop;
  /** @internal use {@link createWorker} */
  constructor(db, options, untilEmpty = false) {
    this.#db = db;
    this.#tables = options.queue.tables;
    this.#handlers = handlersByKind(options.handlers);
    this.#settings = workerSettings(options);
    this.#untilEmpty = untilEmpty;
    this.#stopped = new Promise((resolve) => {
      this.#markStopped = resolve;
    });
    const { name, silentMs, concurrencyByQueue: concurrencyByQueue2, listen } = this.#settings;
    this.#listener = new Listener({
      db,
      tables: this.#tables,
      listen: listen ? listenOf(db) : void 0,
      events: this.#events,
      onWake: (queue) => {
        if (queue === void 0) this.#watch?.look();
        else for (const loop of this.#loops) if (loop.queue === queue) loop.notify();
      }
    });
    this.#liveness = new Liveness({
      db,
      tables: this.#tables,
      name,
      queues: [...concurrencyByQueue2.keys()],
      silentMs,
      events: this.#events,
      onDeclaredGone: async () => {
        await Promise.all(this.#loops.map((loop) => loop.endLostAttempts()));
      }
    });
  }
  /** Listens to what the worker does. Listeners are called after the database knows. */
  on(event, listener) {
    this.#events.on(event, listener);
    return this;
  }
  off(event, listener) {
    this.#events.off(event, listener);
    return this;
  }
  /**
   * Checks the database, registers, and begins to claim. Resolves when it claims; a second call changes nothing.
   *
   * @throws MissingMigrationError | UnsupportedPostgresError, or the driver's error when the database cannot be reached
   * @throws QueueError when the worker was stopped before: make a new one
   */
  start() {
    if (this.#stop !== void 0) {
      return Promise.reject(new QueueError("This worker has been stopped; create another"));
    }
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = void 0;
      throw error;
    });
    return this.#starting;
  }
  /**
   * Starts, and works until SIGINT, SIGTERM or {@link stop}; then stops gracefully and resolves. A second signal ends the
   * process at once, as signals do.
   */
  async run() {
    const onSignal = () => {
      removeListeners();
      void this.stop();
    };
    const removeListeners = () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
    try {
      await this.start();
      await this.#stopped;
    } finally {
      removeListeners();
    }
  }
  /**
   * Claims no more, lets handlers finish within `shutdownTimeoutMs`, aborts the signals of the others, gives their jobs back
   * without spending an attempt, and leaves. Can be called any number of times. Never rejects: what fails is an `error` event, and
   * jobs that could not be given back are found by other workers once this one is silent.
   */
  stop() {
    this.#stop ??= this.#stopGracefully();
    return this.#stop;
  }
  /** Resolves when the queues are empty (only for a worker that works until then). @internal */
  async emptied() {
    await this.#work;
  }
  async #start() {
    await checkDatabase(this.#db, this.#tables);
    const workerId = await this.#liveness.start();
    const { concurrencyByQueue: concurrencyByQueue2, pollIntervalMs, name, retentionMs } = this.#settings;
    const environment = { db: this.#db, tables: this.#tables, workerId };
    const runner = preparing(
      this.#db,
      (error) => this.#events.emit("error", { error, during: "preparing a statement; from now on none is prepared" })
    );
    const watch = this.#untilEmpty ? void 0 : this.#newWatch(runner, workerId);
    this.#watch = watch;
    this.#loops = [...concurrencyByQueue2].map(
      ([queue, concurrency]) => new ClaimLoop({
        environment,
        runner,
        queue,
        handlers: this.#handlers,
        concurrency,
        pollIntervalMs,
        events: this.#events,
        watch,
        giveUp: this.#giveUp.signal
      })
    );
    this.#events.emit("started", { workerId, name, queues: [...concurrencyByQueue2.keys()] });
    this.#work = this.#runLoops();
    void watch?.run();
    if (!this.#untilEmpty) this.#listener.start();
    void pruneLoop(
      { db: this.#db, tables: this.#tables, retentionMs, events: this.#events },
      this.#stopping.signal
    );
  }
  #newWatch(runner, workerId) {
    const { pollIntervalMs } = this.#settings;
    const watch = new Watch({
      runner,
      tables: this.#tables,
      workerId,
      kinds: [...this.#handlers.keys()],
      intervalMs: () => this.#listener.listening ? Math.max(WATCH_MS, pollIntervalMs) : pollIntervalMs,
      events: this.#events
    });
    this.#events.on("polling", () => watch.look());
    return watch;
  }
  async #runLoops() {
    let claimed;
    do {
      claimed = await Promise.all(this.#loops.map((loop) => loop.run()));
    } while (this.#loops.length > 1 && claimed.some((jobs) => jobs > 0) && !this.#stopping.signal.aborted);
  }
  async #stopGracefully() {
    await this.#starting?.catch(() => void 0);
    this.#stopping.abort();
    for (const loop of this.#loops) loop.stop();
    this.#watch?.stop();
    const silenced = this.#listener.stop();
    const finished = this.#work.then(() => Promise.all(this.#loops.map((loop) => loop.finished())));
    const { shutdownTimeoutMs } = this.#settings;
    if (!await within(finished, shutdownTimeoutMs)) {
      for (const loop of this.#loops) loop.interrupt(new QueueError("The worker stops"));
      if (!await within(finished, SETTLE_ALLOWANCE_MS)) this.#giveUp.abort();
    }
    for (const step of [...this.#loops.map((loop) => () => loop.release()), () => this.#liveness.stop()]) {
      const done = step().catch(
        (error) => this.#events.emit("error", { error, during: "stopping" })
      );
      await within(done, SETTLE_ALLOWANCE_MS);
    }
    await silenced;
    this.#events.emit("stopped");
    this.#markStopped();
  }
};
function createWorker(db, options) {
  return new Worker(db, options);
}
function createDrainingWorker(db, options) {
  return new Worker(db, options, true);
}

// src/worker/drain.ts
async function drain(db, options) {
  const { deadlineMs, ...workerOptions } = options;
  checkDurationMs("drain: deadlineMs", deadlineMs, 1, MAX_TIMER_MS);
  const worker = createDrainingWorker(db, { ...workerOptions, shutdownTimeoutMs: 0 });
  const count = { completed: 0, failed: 0, discarded: 0, snoozed: 0, cancelled: 0, interrupted: 0 };
  for (const event of Object.keys(count)) {
    worker.on(event, () => {
      count[event]++;
    });
  }
  const over = new AbortController();
  const deadline = pause(deadlineMs, over.signal).then(() => false);
  try {
    await worker.start();
    const empty = await Promise.race([worker.emptied().then(() => true), deadline]);
    await worker.stop();
    return { ...count, empty };
  } finally {
    over.abort();
  }
}

// src/queries/reclaim-job.ts
import { sql as sql32 } from "drizzle-orm";
async function reclaimJob(db, tables2, job) {
  const rows = await queryRows(db, tables2, reclaimJobQuery(tables2, job));
  return rows.length > 0;
}
function reclaimJobQuery({ queueJobs: queueJobs2 }, job) {
  return sql32`
    update ${queueJobs2} as j
    set attempt = j.attempt + 1, fence = j.fence + 1, worker_id = null, claimed_at = statement_timestamp()
    where j.queue = ${job.queue} and j.id = ${job.id} and j.fence = ${job.fence} - 1
    returning j.id`;
}

// src/queries/transaction-id.ts
import { sql as sql33 } from "drizzle-orm";
async function transactionId(tx, tables2) {
  const [row] = await queryRows(tx, tables2, transactionIdQuery);
  return String(row?.id);
}
var transactionIdQuery = sql33`select pg_current_xact_id()::text as id`;

// src/worker/run-next.ts
async function runNext(db, options) {
  const handlers = handlersByKind(options.handlers);
  const queues = options.queues ?? new Set(options.handlers.map(({ job }) => job.queue));
  for (const queue of queues) {
    const ran = await runOne(db, options.queue.tables, handlers, queue);
    if (ran !== void 0) return ran;
  }
  return void 0;
}
var Abandoned = class extends Error {
  constructor(attempt, outcome) {
    super("abandoned");
    this.attempt = attempt;
    this.outcome = outcome;
  }
};
var Undo = class extends Error {
  constructor(outcome) {
    super("undo");
    this.outcome = outcome;
  }
};
async function runOne(db, tables2, handlers, queue) {
  try {
    return await db.transaction(async (tx) => {
      const [job] = await claimJobs(tx, tables2, {
        queue,
        kinds: [...handlers.keys()],
        bands: Array.from({ length: MAX_PRIORITY + 1 }, (_, priority) => ({
          priority,
          floorMs: Number.NEGATIVE_INFINITY
        })),
        limit: 1,
        workerId: null,
        fromGoneWorkers: true
      });
      const handler = job === void 0 ? void 0 : handlers.get(job.kind);
      if (job === void 0 || handler === void 0) return void 0;
      const { attempt, outcome } = await runInSavepoint(tx, tables2, job, handler);
      if (!(attempt.completeRan && outcome.type === "completed")) {
        await write(tx, tables2, attempt, transitionFor(outcome, attempt.facts));
      }
      return toRanJob(job, outcome);
    });
  } catch (error) {
    if (!(error instanceof Abandoned)) throw error;
    const { attempt, outcome } = error;
    await writeAnew(db, tables2, attempt, outcome);
    return toRanJob(attempt.job, outcome);
  }
}
async function runInSavepoint(tx, tables2, job, handler) {
  const environmentOf = (db) => ({
    db,
    tables: tables2,
    workerId: null,
    checkTransaction: sameAs(tx, tables2)
  });
  let attempt = new Attempt(job, handler, environmentOf(tx));
  let outcome;
  try {
    await tx.transaction(async (savepoint) => {
      attempt = new Attempt(job, handler, environmentOf(savepoint));
      outcome = await executeJob(attempt);
      if (attempt.reason !== void 0) throw new Abandoned(attempt, outcome);
      if (attempt.completeRan && outcome.type === "completed") {
        const held = await findHeldJobs(tx, tables2, attempt.held, [job]);
        if (held.get(job.id) === job.fence) outcome = outcomeIfStillHeld(attempt, outcome);
      }
      if (outcome.type === "failed") throw new Undo(outcome);
    });
  } catch (error) {
    if (error instanceof Abandoned) throw error;
    outcome = error instanceof Undo ? error.outcome : { type: "failed", error };
  }
  return {
    attempt,
    outcome: outcome ?? { type: "failed", error: new QueueError("The savepoint did not run") }
  };
}
async function write(db, tables2, { job, held }, transition) {
  const { id, fence } = job;
  const written = transition.type === "finish" ? await finishJobs(db, tables2, held, [{ id, fence, transition }]) : await rescheduleJobs(db, tables2, held, [{ id, fence, transition }]);
  if (!written.has(job.id)) throw new LeaseLostError(job.kind, job.id);
}
async function writeAnew(db, tables2, attempt, outcome) {
  await db.transaction(async (tx) => {
    if (!await reclaimJob(tx, tables2, attempt.job)) return;
    await write(tx, tables2, attempt, transitionFor(outcome, attempt.facts));
  });
}
function sameAs(tx, tables2) {
  return async (other) => {
    if (await transactionId(other, tables2) === await transactionId(tx, tables2)) return;
    throw new QueueError(
      "In runNext, complete(tx) takes a transaction inside that of the context: db.transaction((tx) => complete(tx)) with its db"
    );
  };
}
function toRanJob(job, outcome) {
  if (outcome.type === "failed") return { job, outcome: "failed", error: outcome.error };
  return { job, outcome: outcome.type === "interrupted" ? "failed" : outcome.type };
}
export {
  InvalidOutputError,
  InvalidPayloadError,
  JobTimeoutError,
  LeaseLostError,
  MissingMigrationError,
  NonRetryableError,
  QueueError,
  UnknownKindError,
  UnsupportedPostgresError,
  WorkerLostError,
  cancel,
  createQueue,
  createWorker,
  defineJob,
  drain,
  exponentialBackoff,
  fixedBackoff,
  handle,
  runNext,
  snooze,
  unvalidated
};
