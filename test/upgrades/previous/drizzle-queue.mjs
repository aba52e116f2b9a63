// @ts-nocheck: built, see README.md
// src/errors.ts
var QueueError = class extends Error {
  name = "QueueError";
  /** @internal Identifies the class across copies of this package. */
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.QueueError");
  /**
   * True also for an error of another copy of this package: a process that imports its ES modules and
   * requires its CommonJS files has two copies, with different classes.
   */
  static [Symbol.hasInstance](value) {
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    return Object.hasOwn(this, "brand") && isBranded(value, this.brand);
  }
};
function isBranded(value, brand) {
  let at = value;
  while (typeof at === "object" && at !== null) {
    if (Object(at.constructor).brand === brand) return true;
    at = Object.getPrototypeOf(at);
  }
  return false;
}
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
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.InvalidPayloadError");
};
var InvalidOutputError = class extends QueueError {
  constructor(kind, issues) {
    super(`The output of '${kind}' is invalid: ${describeIssues(issues)}`);
    this.kind = kind;
    this.issues = issues;
  }
  name = "InvalidOutputError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.InvalidOutputError");
};
var UnknownKindError = class extends QueueError {
  name = "UnknownKindError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.UnknownKindError");
};
var JobTimeoutError = class extends QueueError {
  constructor(kind, jobId, timeoutMs) {
    super(`Job ${jobId} ('${kind}') took longer than its timeoutMs of ${timeoutMs} ms`);
    this.kind = kind;
    this.jobId = jobId;
    this.timeoutMs = timeoutMs;
  }
  name = "JobTimeoutError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.JobTimeoutError");
};
var LeaseLostError = class extends QueueError {
  constructor(kind, jobId, why = "another worker has claimed it, or it is already settled") {
    super(`Job ${jobId} ('${kind}') is no longer held by this worker: ${why}`);
    this.kind = kind;
    this.jobId = jobId;
  }
  name = "LeaseLostError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.LeaseLostError");
};
var JobCancelledError = class extends QueueError {
  constructor(kind, jobId, reason) {
    super(`Job ${jobId} ('${kind}') is to be cancelled: ${reason}`);
    this.kind = kind;
    this.jobId = jobId;
    this.reason = reason;
  }
  name = "JobCancelledError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.JobCancelledError");
};
var NonRetryableError = class extends QueueError {
  name = "NonRetryableError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.NonRetryableError");
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
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.WorkerLostError");
};
var MissingMigrationError = class extends QueueError {
  name = "MissingMigrationError";
  static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.MissingMigrationError");
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
  static brand = /* @__PURE__ */ Symbol.for(
    "drizzle-queue.UnsupportedPostgresError"
  );
};

// src/job/shown.ts
var MAX_TEXT = 60;
function shown(value) {
  try {
    if (value instanceof Date) return "an invalid or out-of-range Date";
    const text5 = String(value);
    const cut = text5.length > MAX_TEXT ? `${text5.slice(0, MAX_TEXT)}\u2026` : text5;
    return typeof value === "string" ? `'${cut}'` : cut;
  } catch {
    return `a value of type ${typeof value}`;
  }
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
function checkText(text5, path) {
  if (text5.includes("\0")) refuse("contains a NUL character (\\u0000), which Postgres cannot keep", path);
  if (HALF_SURROGATE.test(text5)) {
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
var DEFAULT_MAX_PAYLOAD_BYTES = 1024 * 1024;
var LARGEST_MAX_PAYLOAD_BYTES = 100 * 1024 * 1024;
var EARLIEST = Date.parse("0001-01-01T00:00:00Z");
var LATEST = Date.parse("9999-12-31T00:00:00Z");
function checkInteger(what, value, min, max) {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${what} must be a whole number from ${min} to ${max}, got ${shown(value)}`);
  }
  return value;
}
function checkDurationMs(what, value, minMs = 0, maxMs = MAX_DELAY_MS) {
  if (typeof value !== "number" || !(value >= minMs && value <= maxMs)) {
    throw new RangeError(
      `${what} must be a number of milliseconds from ${minMs} to ${maxMs}, got ${shown(value)}`
    );
  }
  return Math.round(value);
}
function checkDate(what, value) {
  const time = value instanceof Date ? value.getTime() : Number.NaN;
  if (!(time >= EARLIEST && time <= LATEST)) {
    throw new RangeError(`${what} must be a valid Date between the years 1 and 9999, got ${shown(value)}`);
  }
  return value;
}
function checkBoolean(what, value) {
  if (typeof value === "boolean") return value;
  throw new TypeError(`${what} must be true or false, got ${shown(value)}`);
}
function checkObject2(what, value) {
  if (typeof value === "object" && value !== null) return value;
  throw new TypeError(`${what} must be an object, got ${shown(value)}`);
}
function checkText2(what, value, maxBytes) {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`${what} must be a text that is not empty, got ${shown(value)}`);
  }
  if (value.includes("\0")) {
    throw new TypeError(`${what} must not contain a NUL character: Postgres cannot keep it`);
  }
  if (HALF_SURROGATE.test(value)) {
    throw new TypeError(`${what} must not contain half of a surrogate pair: it is not Unicode text`);
  }
  const bytes = utf8Bytes(value);
  if (bytes > maxBytes) {
    throw new TypeError(`${what} must be at most ${maxBytes} bytes of UTF-8, got ${bytes}`);
  }
  return value;
}
function checkId(method, id) {
  if (typeof id === "number" && Number.isSafeInteger(id) && id > 0) return id;
  throw new TypeError(`${method}: id must be a job's id, a whole number above 0; got ${shown(id)}`);
}
function utf8Bytes(text5) {
  return new TextEncoder().encode(text5).length;
}

// src/job/backoff.ts
function exponentialBackoff(options = {}) {
  checkObject2("exponentialBackoff: its options", options);
  const { initialMs = 1e3, maxMs = 36e5, factor = 2, random = Math.random } = options;
  if (!(Number.isFinite(initialMs) && initialMs > 0)) {
    throw new RangeError(`exponentialBackoff: initialMs must be a number above 0, got ${shown(initialMs)}`);
  }
  if (!(Number.isFinite(maxMs) && maxMs >= initialMs)) {
    throw new RangeError(
      `exponentialBackoff: maxMs must be a number of at least initialMs, got ${shown(maxMs)}`
    );
  }
  if (!(Number.isFinite(factor) && factor >= 1)) {
    throw new RangeError(`exponentialBackoff: factor must be a number of at least 1, got ${shown(factor)}`);
  }
  if (typeof random !== "function") {
    throw new TypeError(`exponentialBackoff: random must be a function, got ${shown(random)}`);
  }
  return (attempt) => Math.round(random() * Math.min(maxMs, initialMs * factor ** (attempt - 1)));
}
function fixedBackoff(delayMs) {
  if (!(Number.isFinite(delayMs) && delayMs >= 0)) {
    throw new RangeError(`fixedBackoff: delayMs must be a number of at least 0, got ${shown(delayMs)}`);
  }
  return () => delayMs;
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
  checkObject2(what("its options"), options);
  for (const name of ["payload", "output"]) {
    if (options[name] !== void 0 && !isStandardSchema(options[name])) {
      throw new TypeError(
        `${what(name)} must be a Standard Schema (zod, valibot, arktype, \u2026) or unvalidated<T>()`
      );
    }
  }
  const { timeoutMs } = options;
  const backoff = options.backoff ?? exponentialBackoff();
  if (typeof backoff !== "function") {
    throw new TypeError(`${what("backoff")} must be a function, got ${shown(backoff)}`);
  }
  return Object.freeze({
    kind,
    // An absent schema is `undefined` in the type parameter as well; TypeScript cannot follow that through
    // the default.
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
    keepResult: checkBoolean(what("keepResult"), options.keepResult ?? true)
  });
}
function checkDefinition(caller, value) {
  if (typeof value !== "object" || value === null || typeof value.kind !== "string" || !("maxAttempts" in value)) {
    const got = typeof value === "string" ? `the text ${shown(value)}` : shown(value);
    throw new UnknownKindError(`${caller} takes a job definition, as defineJob() makes it; got ${got}`);
  }
}

// src/job/outcome.ts
var SNOOZE = /* @__PURE__ */ Symbol.for("drizzle-queue.snooze");
var CANCEL = /* @__PURE__ */ Symbol.for("drizzle-queue.cancel");
var Snooze = class {
  constructor(delayMs) {
    this.delayMs = delayMs;
  }
  /** Keeps the type nominal as well: an output that happens to have a `delayMs` is no snooze. */
  [SNOOZE] = true;
};
var Cancel = class {
  constructor(reason) {
    this.reason = reason;
  }
  /** Keeps the type nominal as well: an output that happens to have a `reason` is no cancel. */
  [CANCEL] = true;
};
function isSnooze(returned) {
  return typeof returned === "object" && returned !== null && SNOOZE in returned;
}
function isCancel(returned) {
  return typeof returned === "object" && returned !== null && CANCEL in returned;
}
function snooze(delayMs) {
  return new Snooze(checkDurationMs("snooze: delayMs", delayMs));
}
function cancel(reason) {
  return new Cancel(typeof reason === "string" ? reason : shown(reason));
}

// src/schema/create-queue-tables.ts
import { is as is2 } from "drizzle-orm";
import { PgSchema } from "drizzle-orm/pg-core";

// src/schema/declare-table.ts
import { pgTable } from "drizzle-orm/pg-core";
function declareTableIn(schema) {
  return schema === void 0 ? pgTable : schema.table;
}

// src/schema/own-columns.ts
import { getTableColumns, is } from "drizzle-orm";
import { getTableConfig, PgColumnBuilder, pgTable as pgTable2 } from "drizzle-orm/pg-core";

// src/schema/queue-jobs.ts
import { sql } from "drizzle-orm";
import {
  bigint,
  check as check2,
  index,
  jsonb,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex
} from "drizzle-orm/pg-core";
function defineJobsTable(table, name, ownColumns) {
  const jobs = table(
    name,
    {
      id: bigint("id", { mode: "number" }).notNull().generatedAlwaysAsIdentity(),
      runAt: timestamp("run_at", { withTimezone: true }).notNull().defaultNow(),
      createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
      claimedAt: timestamp("claimed_at", { withTimezone: true }),
      workerId: bigint("worker_id", { mode: "number" }),
      fence: bigint("fence", { mode: "number" }).notNull().default(0),
      priority: smallint("priority").notNull().default(5),
      attempt: smallint("attempt").notNull().default(0),
      maxAttempts: smallint("max_attempts").notNull(),
      queue: text("queue").notNull(),
      kind: text("kind").notNull(),
      uniqueKey: text("unique_key"),
      payload: jsonb("payload").notNull(),
      errors: jsonb("errors").$type().notNull().default([]),
      metadata: jsonb("metadata").$type().notNull().default({}),
      // Usually null, which takes no room. Both are written while the job is held, so no index contains them.
      cancelReason: text("cancel_reason"),
      progress: jsonb("progress"),
      ...ownColumns
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.id, t.queue] }),
      // `priority` comes first, or a bare `queue = …` in another statement would tempt the planner to walk a
      // whole queue. The predicate always holds, but only the claim repeats it: PostgreSQL 18 skips over a
      // leading column, and without the predicate statements that name ids walked this index (47–74 ms for
      // 200 jobs instead of 3).
      index(`${name}_claim_idx`).on(t.priority, t.queue, t.runAt, t.id).where(sql`priority >= 0`),
      uniqueIndex(`${name}_unique_key_idx`).on(t.queue, t.kind, t.uniqueKey).where(sql`unique_key is not null`),
      check2(`${name}_priority_check`, sql`priority between 0 and 9`)
    ]
  );
  return jobs;
}

// src/schema/queue-results.ts
import { sql as sql2 } from "drizzle-orm";
import {
  bigint as bigint2,
  check as check3,
  index as index2,
  jsonb as jsonb2,
  primaryKey as primaryKey2,
  smallint as smallint2,
  text as text2,
  timestamp as timestamp2
} from "drizzle-orm/pg-core";
function defineResultsTable(table, name, ownColumns) {
  const results = table(
    name,
    {
      jobId: bigint2("job_id", { mode: "number" }).notNull(),
      createdAt: timestamp2("created_at", { withTimezone: true }).notNull(),
      runAt: timestamp2("run_at", { withTimezone: true }).notNull(),
      claimedAt: timestamp2("claimed_at", { withTimezone: true }),
      finishedAt: timestamp2("finished_at", { withTimezone: true }).notNull().defaultNow(),
      workerId: bigint2("worker_id", { mode: "number" }),
      fence: bigint2("fence", { mode: "number" }).notNull(),
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
      metadata: jsonb2("metadata").$type().notNull(),
      ...ownColumns
    },
    (t) => [
      primaryKey2({ name: `${name}_pkey`, columns: [t.jobId, t.queue] }),
      // Pruning reads the oldest results; without this index it would read the whole history every minute.
      index2(`${name}_finished_at_idx`).on(t.finishedAt),
      check3(`${name}_state_check`, sql2`state in ('completed', 'discarded', 'cancelled')`)
    ]
  );
  return results;
}

// src/schema/own-columns.ts
var ALSO_TAKEN = ["delayMs", "job", "cursor", "limit", "payloadBytes", "progress", "place"];
var library;
function libraryColumns() {
  if (library === void 0) {
    const jobs = getTableColumns(defineJobsTable(pgTable2, "queue_jobs", {}));
    const results = getTableColumns(
      defineResultsTable(pgTable2, "queue_results", {})
    );
    library = {
      jobKeys: new Set(Object.keys(jobs)),
      keys: /* @__PURE__ */ new Set([...Object.keys(jobs), ...Object.keys(results), ...ALSO_TAKEN]),
      names: new Set([...Object.values(jobs), ...Object.values(results)].map(({ name }) => name))
    };
  }
  return library;
}
var found = /* @__PURE__ */ new WeakMap();
function ownColumnsOf(queueJobs2) {
  const known2 = found.get(queueJobs2);
  if (known2 !== void 0) return known2;
  const { jobKeys } = libraryColumns();
  const own = Object.entries(getTableColumns(queueJobs2)).filter(([key]) => !jobKeys.has(key));
  const columns = own.map(([key, column]) => toOwnColumn(key, column));
  found.set(queueJobs2, columns);
  return columns;
}
function checkOwnKeys(columns) {
  if (typeof columns !== "object" || columns === null) {
    throw new TypeError(
      `createQueueTables: columns must be an object of columns, got a value of type ${typeof columns}`
    );
  }
  for (const [key, column] of Object.entries(columns)) {
    if (libraryColumns().keys.has(key)) refuse2(key, "the name is taken; choose another");
    if (!is(column, PgColumnBuilder)) refuse2(key, "must be a column, such as text('name')");
  }
}
function checkOwnColumns(queueJobs2) {
  for (const { key, column } of ownColumnsOf(queueJobs2)) {
    if (column.keyAsName) refuse2(key, `give it a name in the database, such as ${column.name.toLowerCase()}`);
    if (column.name.includes("\0")) refuse2(key, "its name must not contain a NUL character");
    if (libraryColumns().names.has(column.name)) refuse2(key, `the column name ${column.name} is taken`);
    if (column.isUnique || column.primary) {
      refuse2(key, "it cannot be unique: results may repeat it; use the option uniqueKey of an enqueue");
    }
  }
}
function checkSameOwnColumns(queueJobs2, queueResults2) {
  const names = new Set(getTableConfig(queueResults2).columns.map(({ name }) => name));
  for (const { key, column } of ownColumnsOf(queueJobs2)) {
    if (!names.has(column.name)) {
      throw new TypeError(
        `createQueue: queueJobs has the column ${key}, and queueResults has not: take both from one createQueueTables()`
      );
    }
  }
}
function toOwnColumn(key, column) {
  const name = `"${column.name.replaceAll('"', '""')}"`;
  const values = valuesOf(column);
  if (values === void 0 || column.generated !== void 0 || column.generatedIdentity !== void 0) {
    return refuse2(
      key,
      `a column of type ${column.getSQLType()} cannot be used. Text, numbers, booleans, dates, uuid, enums, json and customType can`
    );
  }
  return { key, name, values, castTo: castOf(column), column };
}
function valuesOf(column) {
  const type = column.getSQLType();
  if ("dimensions" in column && column.dimensions !== 0) return void 0;
  if (/serial/.test(type)) return void 0;
  if (type === "json" || type === "jsonb") return "json";
  const { dataType } = column;
  if (dataType === "date" || dataType === "object date") return "date";
  const [word] = dataType.split(" ");
  switch (word) {
    case "string":
      return "text";
    case "number":
    case "bigint":
    case "boolean":
    case "custom":
      return word;
    default:
      return void 0;
  }
}
function castOf(column) {
  const type = column.getSQLType();
  if (/^(varchar|char)\b/.test(type)) return "text";
  const { enum: definition } = column;
  if (definition === void 0) return type;
  return [definition.schema, definition.enumName].filter((part) => part !== void 0).map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}
function refuse2(key, why) {
  throw new TypeError(`createQueueTables: columns.${key}: ${why}`);
}

// src/schema/queue-pauses.ts
import { text as text3, timestamp as timestamp3 } from "drizzle-orm/pg-core";
function definePausesTable(table, name) {
  const pauses = table(name, {
    queue: text3("queue").primaryKey(),
    pausedAt: timestamp3("paused_at", { withTimezone: true }).notNull().defaultNow()
  });
  return pauses;
}

// src/schema/queue-workers.ts
import { bigint as bigint3, integer, jsonb as jsonb3, text as text4, timestamp as timestamp4 } from "drizzle-orm/pg-core";
function defineWorkersTable(table, name) {
  const workers = table(name, {
    id: bigint3("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    name: text4("name").notNull(),
    queues: jsonb3("queues").$type().notNull(),
    startedAt: timestamp4("started_at", { withTimezone: true }).notNull().defaultNow(),
    seenAt: timestamp4("seen_at", { withTimezone: true }).notNull().defaultNow(),
    session: integer("session")
  });
  return workers;
}

// src/schema/create-queue-tables.ts
function createQueueTables(options = {}) {
  const prefix = options?.prefix ?? "queue_";
  if (typeof prefix !== "string" || !/^[a-z_][a-z0-9_]{0,39}$/.test(prefix)) {
    const got = typeof prefix === "string" ? `'${prefix}'` : `a value of type ${typeof prefix}`;
    throw new TypeError(
      `createQueueTables: prefix must be 1\u201340 characters of a\u2013z, 0\u20139 and _, not starting with a digit; got ${got}`
    );
  }
  if (options?.schema !== void 0 && !(is2(options.schema, PgSchema) && isName(options.schema.schemaName))) {
    throw new TypeError("createQueueTables: schema must be what pgSchema() answers for a name without NUL");
  }
  const table = declareTableIn(options?.schema);
  const columns = options?.columns ?? {};
  checkOwnKeys(columns);
  const queueJobs2 = defineJobsTable(table, `${prefix}jobs`, columns);
  checkOwnColumns(queueJobs2);
  return {
    queueJobs: queueJobs2,
    queueResults: defineResultsTable(
      table,
      `${prefix}results`,
      columns
    ),
    queueWorkers: defineWorkersTable(table, `${prefix}workers`),
    queuePauses: definePausesTable(table, `${prefix}pauses`)
  };
}
function isName(value) {
  return typeof value === "string" && value !== "" && !value.includes("\0");
}

// src/schema/index.ts
var tables = createQueueTables();
var queueJobs = tables.queueJobs;
var queueResults = tables.queueResults;
var queueWorkers = tables.queueWorkers;
var queuePauses = tables.queuePauses;

// src/queue/options.ts
import { is as is3 } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
function checkQueueOptions(options) {
  checkObject2("createQueue: its options", options);
  const { tables: tables2, wakeUps, maxPayloadBytes } = options;
  if (wakeUps !== void 0) checkBoolean("createQueue: wakeUps", wakeUps);
  if (maxPayloadBytes !== void 0) {
    checkInteger("createQueue: maxPayloadBytes", maxPayloadBytes, 1, LARGEST_MAX_PAYLOAD_BYTES);
  }
  if (tables2 === void 0) return;
  checkObject2("createQueue: tables", tables2);
  for (const name of Object.keys({
    queueJobs,
    queueResults,
    queueWorkers,
    queuePauses
  })) {
    const table = Reflect.get(tables2, name);
    if (!is3(table, PgTable)) {
      throw new TypeError(
        `createQueue: tables.${name} must be a table of createQueueTables(), got ${shown(table)}`
      );
    }
  }
}

// src/job/stored-size.ts
function checkStoredSize(kind, path, json, maxBytes) {
  if (json.length * 3 <= maxBytes) return;
  const bytes = utf8Bytes(json);
  if (bytes <= maxBytes) return;
  const message = `${bytes} bytes of JSON are more than the ${maxBytes} that the queue's maxPayloadBytes allows; store it elsewhere and enqueue a reference to it, or raise the limit: createQueue({ maxPayloadBytes })`;
  throw new InvalidPayloadError(kind, [{ message, path }]);
}

// src/job/validate.ts
function payloadToStore(job, payload, maxBytes = DEFAULT_MAX_PAYLOAD_BYTES) {
  return toStore(job, job.payload, payload, InvalidPayloadError, maxBytes);
}
async function outputToStore(job, output) {
  return await toStore(job, job.output, output, InvalidOutputError, Number.POSITIVE_INFINITY);
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
function toStore(job, schema, value, Refused, maxBytes) {
  const json = storedJsonOf(job, value === void 0 ? null : value, Refused);
  checkStoredSize(job.kind, "", json, maxBytes);
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
function newJob(job, payload, options = NO_OPTIONS, maxPayloadBytes = DEFAULT_MAX_PAYLOAD_BYTES) {
  if (typeof options !== "object" || options === null) checkObject2(optionOf(job, "its options"), options);
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
    metadata: metadata === void 0 ? "{}" : metadataToStore(job.kind, metadata, maxPayloadBytes)
  });
  const stored = payloadToStore(job, payload, maxPayloadBytes);
  return typeof stored === "string" ? made(stored) : stored.then(made);
}
var NO_OPTIONS = {};
function optionOf({ kind }, option) {
  return `enqueue('${kind}'): ${option}`;
}
function metadataToStore(kind, metadata, maxBytes) {
  let json;
  try {
    json = toStoredJson(metadata);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const path = error.issue.path === "" ? "metadata" : `metadata.${error.issue.path}`;
    throw new InvalidPayloadError(kind, [{ ...error.issue, path }]);
  }
  if (!json.startsWith("{")) throw new TypeError(`enqueue('${kind}'): metadata must be an object`);
  checkStoredSize(kind, "metadata", json, maxBytes);
  return json;
}
function mayBeDue({ delayMs, runAtMs }) {
  return runAtMs !== null || delayMs === 0;
}

// src/queries/find-job.ts
import { sql as sql6 } from "drizzle-orm";

// src/sql/executor.ts
import { getTableName } from "drizzle-orm";
var NO_DATABASE = "drizzle-queue needs a Drizzle database or transaction as the first argument";
async function queryRows(db, tables2, query, { withUsersSql = false } = {}) {
  if (typeof db?.execute !== "function") throw new TypeError(NO_DATABASE);
  let result;
  try {
    result = await db.execute(query);
  } catch (error) {
    throw missingMigration(error, tables2, withUsersSql) ?? error;
  }
  const rows = Array.isArray(result) ? result : result?.rows;
  if (rows === void 0) throw new TypeError(NO_DATABASE);
  return rows;
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
  return new MissingMigrationError(`The queue's tables are not up to date (${message})`, {
    cause: driverError
  });
}

// src/sql/job-record.ts
import { sql as sql5 } from "drizzle-orm";

// src/sql/epoch-ms.ts
import { sql as sql3 } from "drizzle-orm";
function epochMs(column) {
  return sql3.raw(`date_part('epoch', ${column}) * 1000`);
}
function dateOf(value) {
  return new Date(Math.floor(Number(value) + 5e-4));
}

// src/sql/own-values.ts
import { is as is4, SQL, sql as sql4 } from "drizzle-orm";
function ownNames(own, alias = "") {
  return sql4.raw(own.map(({ name }) => `, ${alias}${name}`).join(""));
}
function selectOwn(own, alias) {
  return sql4.join(
    own.map(({ name, values }, index3) => {
      const column = `${alias}.${name}`;
      const value = values === "date" ? epochMs(column) : sql4.raw(`${column}::text`);
      return sql4`, ${value} as ${sql4.raw(`own_${index3}`)}`;
    })
  );
}
function ownRecord(own, row) {
  return Object.fromEntries(own.map((column, index3) => [column.key, decoded(column, row[`own_${index3}`])]));
}
function decoded({ values, column }, raw) {
  if (raw === null || raw === void 0) return null;
  switch (values) {
    case "date":
      return dateOf(raw);
    case "number":
      return Number(raw);
    case "bigint":
      return BigInt(String(raw));
    case "boolean":
      return raw === "true";
    case "json":
      return JSON.parse(String(raw));
    case "text":
      return String(raw);
    case "custom":
      return column.mapFromDriverValue(raw);
  }
}
function ownValue({ castTo }, text5) {
  return sql4`${text5}${sql4.raw(castTo === "text" ? "" : `::${castTo}`)}`;
}
function ownDefault(own) {
  const value = own.column.default;
  if (is4(value, SQL)) return sql4`(${value})`;
  if (value === void 0) return sql4`null`;
  return ownValue(own, sql4`${textOf(own, value, "the default of")}::text`);
}
function withOwn(own, job, options = {}) {
  if (own.length === 0) return job;
  const what = `enqueue('${job.kind}')`;
  return {
    ...job,
    own: own.map((column) => {
      const value = valueOrDefault(column, Reflect.get(options, column.key));
      if (value !== void 0) return textOf(column, value, what);
      checkNotNeeded(column, what);
      return void 0;
    })
  };
}
function ownWanted(own, filter) {
  return own.flatMap((column) => {
    const value = Reflect.get(filter, column.key);
    return value === void 0 ? [] : [{ column, text: value === null ? null : textOf(column, value, "list") }];
  });
}
function checkNotNeeded({ key, name, column }, what) {
  if (!column.notNull || column.default !== void 0) return;
  throw new TypeError(`${what}: ${key} must be given: its column ${name} is NOT NULL and has no default`);
}
function valueOrDefault({ column }, value) {
  if (value !== void 0) return value;
  if (column.defaultFn !== void 0) return column.defaultFn();
  return column.default === void 0 ? column.onUpdateFn?.() : void 0;
}
function textOf(own, value, what) {
  const { key, values, column } = own;
  if (value === null) {
    if (column.notNull) throw new TypeError(`${what}: ${key} must not be null: its column is NOT NULL`);
    return null;
  }
  switch (values) {
    case "date":
      return checkDate(`${what}: ${key}`, toDate(value)).toISOString();
    case "json":
      return jsonOf(value, `${what}: ${key}`);
    case "custom":
      return storable(String(column.mapToDriverValue(value)), `${what}: ${key}`);
    case "text":
      if (typeof value !== "string")
        throw new TypeError(`${what}: ${key} must be a string, got ${typeof value}`);
      return storable(value, `${what}: ${key}`);
    case "number":
    case "bigint":
    case "boolean":
      if (typeof value === values) return String(value);
      throw new TypeError(`${what}: ${key} must be a ${values}, got ${typeof value}`);
  }
}
function toDate(value) {
  return value instanceof Date ? value : new Date(Number.NaN);
}
function jsonOf(value, what) {
  try {
    return toStoredJson(value);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const { message, path } = error.issue;
    throw new TypeError(`${what}${path === "" ? "" : ` at ${path}`}: ${message}`);
  }
}
function storable(text5, what) {
  if (text5.includes("\0")) {
    throw new TypeError(`${what} must not contain a NUL character: Postgres cannot keep it`);
  }
  if (HALF_SURROGATE.test(text5)) {
    throw new TypeError(`${what} must not contain half of a surrogate pair: it is not Unicode text`);
  }
  return text5;
}

// src/sql/job-record.ts
function liveRecords({ queueJobs: queueJobs2 }, where) {
  return sql5`
      select j.id, j.queue, j.kind, ${liveState} as state, j.payload, null::jsonb as output, j.errors,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.metadata, j.worker_id,
        ${epochMs("j.created_at")} as created_at, ${epochMs("j.run_at")} as run_at,
        ${epochMs("j.claimed_at")} as claimed_at, null::float8 as finished_at,
        j.progress, j.cancel_reason${selectOwn(ownColumnsOf(queueJobs2), "j")}
      from ${queueJobs2} as j where ${where}`;
}
function resultRecords({ queueJobs: queueJobs2, queueResults: queueResults2 }, where) {
  return sql5`
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.metadata, r.worker_id,
        ${epochMs("r.created_at")} as created_at, ${epochMs("r.run_at")} as run_at,
        ${epochMs("r.claimed_at")} as claimed_at, ${epochMs("r.finished_at")} as finished_at,
        null::jsonb as progress, null::text as cancel_reason${selectOwn(ownColumnsOf(queueJobs2), "r")}
      from ${queueResults2} as r where ${where}`;
}
var liveState = sql5.raw(
  `case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end`
);
function toJobRecord(row, own) {
  const common = {
    ...ownRecord(own, row),
    id: Number(row.id),
    queue: String(row.queue),
    kind: String(row.kind),
    payload: row.payload,
    priority: Number(row.priority),
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    uniqueKey: row.unique_key === null ? null : String(row.unique_key),
    // Only this library writes the two jsonb columns, in these shapes.
    metadata: row.metadata,
    errors: row.errors,
    createdAt: dateOf(row.created_at),
    runAt: dateOf(row.run_at)
  };
  const live = {
    progress: row.progress,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason)
  };
  const workerId = row.worker_id === null ? null : Number(row.worker_id);
  const claimedAt = row.claimed_at === null ? null : dateOf(row.claimed_at);
  const state = row.state;
  switch (state) {
    case "waiting":
      return { ...common, ...live, state, runAt: null };
    case "scheduled":
    case "due":
      return { ...common, ...live, state };
    case "running":
      return { ...common, ...live, state, workerId: Number(workerId), claimedAt: claimedAt ?? common.runAt };
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
  return row === void 0 ? void 0 : toJobRecord(row, ownColumnsOf(tables2.queueJobs));
}
function findJobQuery(tables2, id) {
  return sql6`
    ${liveRecords(tables2, sql6`j.id = ${id}`)}
    union all ${resultRecords(tables2, sql6`r.job_id = ${id}`)}`;
}

// src/queries/find-pauses.ts
import { sql as sql7 } from "drizzle-orm";
async function findPauses(db, tables2) {
  const rows = await queryRows(db, tables2, findPausesQuery(tables2));
  return rows.map((row) => ({ queue: String(row.queue), pausedAt: dateOf(row.paused_at) }));
}
function findPausesQuery({ queuePauses: queuePauses2 }) {
  return sql7`
    select p.queue, ${epochMs("p.paused_at")} as paused_at from ${queuePauses2} as p order by p.queue`;
}

// src/queries/pause-queue.ts
import { sql as sql9 } from "drizzle-orm";

// src/sql/wake-channel.ts
import { getTableConfig as getTableConfig2 } from "drizzle-orm/pg-core";
function wakeChannel({ queueJobs: queueJobs2 }) {
  const { schema, name } = getTableConfig2(queueJobs2);
  if (schema === void 0 && /^[a-z0-9_]{1,50}$/.test(name)) return `queue_wake_${name}`;
  const readable = [schema, name].join("_").toLowerCase().replaceAll(/[^a-z0-9]+/g, "_");
  return `queue_wakes_${readable.slice(0, 34)}_${hash64(JSON.stringify([schema ?? null, name]))}`;
}
var REQUESTED = "";
function hash64(text5) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text5)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

// src/sql/wake-up.ts
import { sql as sql8 } from "drizzle-orm";
function notified(channel, queue) {
  return sql8`pg_notify(${channel}::text, ${queue}) is not null`;
}

// src/queries/pause-queue.ts
async function pauseQueue(db, tables2, pause) {
  const rows = await queryRows(db, tables2, pauseQueueQuery(tables2, pause));
  return rows.length > 0;
}
function pauseQueueQuery({ queuePauses: queuePauses2 }, { queue, channel }) {
  return sql9`
    with paused as (
      insert into ${queuePauses2} (queue, paused_at) values (${queue}, statement_timestamp())
      on conflict (queue) do nothing
      returning queue
    )
    select p.queue, ${channel === void 0 ? sql9`false` : notified(channel, sql9`${REQUESTED}`)} as woke
    from paused as p`;
}

// src/queries/resume-queue.ts
import { sql as sql10 } from "drizzle-orm";
async function resumeQueue(db, tables2, resume) {
  const rows = await queryRows(db, tables2, resumeQueueQuery(tables2, resume));
  return rows.length > 0;
}
function resumeQueueQuery({ queuePauses: queuePauses2 }, { queue, channel }) {
  return sql10`
    with resumed as (
      delete from ${queuePauses2} as p where p.queue = ${queue}
      returning p.queue
    )
    select r.queue, ${channel === void 0 ? sql10`false` : notified(channel, sql10`${REQUESTED}`)} as woke
    from resumed as r`;
}

// src/job/describe-error.ts
var MAX_NAME = 200;
var MAX_MESSAGE = 2e3;
var MAX_STACK = 8e3;
var MAX_CAUSES = 3;
var HALF_SURROGATES = new RegExp(HALF_SURROGATE, "g");
function describeError(thrown, attempt) {
  return { attempt, ...describeThrown(thrown) };
}
function describeThrown(thrown) {
  try {
    return recordOf(withoutQuery(thrown));
  } catch {
    return { name: "NonError", message: "thrown: a value that cannot be read" };
  }
}
function recordOf(error) {
  if (!(error instanceof Error)) {
    return { name: "NonError", message: storable2(`thrown: ${preview(error)}`, MAX_MESSAGE) };
  }
  const record = {
    name: storable2(String(error.name || "Error"), MAX_NAME),
    message: storable2(messageWithCauses(error), MAX_MESSAGE)
  };
  return typeof error.stack === "string" ? { ...record, stack: storable2(error.stack, MAX_STACK) } : record;
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
  const shown2 = withoutQuery(value);
  if (shown2 instanceof Error) return `${String(shown2.name)}: ${messageIn(shown2)}`;
  if (typeof shown2 !== "object") return String(shown2);
  try {
    return JSON.stringify(shown2, (_key, item) => item instanceof Error ? preview(item) : item) ?? String(shown2);
  } catch {
    return Object.prototype.toString.call(shown2);
  }
}
function storable2(text5, maxLength = MAX_MESSAGE) {
  const cut = text5.length > maxLength ? `${text5.slice(0, maxLength - 1)}\u2026` : text5;
  return cut.replaceAll("\0", "\uFFFD").replaceAll(HALF_SURROGATES, "\uFFFD");
}

// src/queries/cancel-job.ts
import { sql as sql13 } from "drizzle-orm";

// src/sql/hold-end.ts
import { sql as sql11 } from "drizzle-orm";
function endHolds(tables2, { change, where, returning, ctes = sql11``, answer: answer2 }) {
  const ended = sql11`${changed(tables2, change)}
    where ${where}
    returning ${returning}`;
  if (answer2 === void 0) return sql11`${ctes}${ended}`;
  return sql11`${ctes},
    ${sql11.raw(answer2.name)} as (${ended}
    )${answer2.select}`;
}
function changed({ queueJobs: queueJobs2 }, change) {
  if (change === "delete") {
    return sql11`
    delete from ${queueJobs2} as j`;
  }
  const { set, from, holder = sql11`null`, claimedAt = sql11`null` } = change;
  return sql11`
    update ${queueJobs2} as j
    set worker_id = ${holder}, claimed_at = ${claimedAt}, ${set}${from === void 0 ? sql11`` : sql11`
    from ${from}`}`;
}

// src/sql/recorded-error.ts
import { sql as sql12 } from "drizzle-orm";

// src/schema/attempt-error.ts
var KEPT_ERRORS = 10;

// src/sql/recorded-error.ts
var now = `to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
function withTime(error) {
  return sql12`${error} || jsonb_build_object('at', ${sql12.raw(now)})`;
}
function withError(errors, error) {
  const full = sql12`jsonb_array_length(${errors}) >= ${sql12.raw(String(KEPT_ERRORS))}`;
  return sql12`case when ${error} is null then ${errors}
        else (case when ${full} then ${errors} - 0 else ${errors} end) || jsonb_build_array(${error}) end`;
}

// src/queries/cancel-job.ts
async function cancelJob(db, tables2, cancel3) {
  const rows = await queryRows(db, tables2, cancelJobQuery(tables2, cancel3));
  return rows.length > 0;
}
function cancelJobQuery(tables2, { id, queue, reason, force }) {
  const { queueJobs: queueJobs2, queueResults: queueResults2 } = tables2;
  const own = ownColumnsOf(queueJobs2);
  const free = sql13`
    with free as (
      select j.id from ${queueJobs2} as j
      where j.queue = ${queue} and j.id = ${id}${force === void 0 ? sql13` and j.worker_id is null` : sql13``}
      for no key update skip locked
    )`;
  const insert = sql13`
    insert into ${queueResults2} (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
      unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at${ownNames(own)})
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      ${withError(sql13`c.errors`, sql13`(${withTime(sql13`${JSON.stringify(reason)}::text::jsonb`)})`)},
      c.attempt, c.max_attempts, c.priority, c.fence, c.unique_key, c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()${ownNames(own, "c.")}
    from cancelled as c
    returning job_id`;
  const waking = (channel) => sql13`,
    recorded as (${insert})
    select r.job_id, ${notified(channel, sql13`${REQUESTED}`)} as woke from recorded as r`;
  return endHolds(tables2, {
    ctes: free,
    change: "delete",
    where: sql13`j.queue = ${queue} and j.id = any(array(select id from free))`,
    returning: sql13`j.*`,
    answer: { name: "cancelled", select: force?.channel === void 0 ? insert : waking(force.channel) }
  });
}

// src/queries/request-cancel.ts
import { sql as sql14 } from "drizzle-orm";
async function requestCancel(db, tables2, request) {
  const rows = await queryRows(db, tables2, requestCancelQuery(tables2, request));
  return rows.length > 0;
}
function requestCancelQuery({ queueJobs: queueJobs2 }, { id, queue, reason, channel }) {
  return sql14`
    with held as (
      select j.id from ${queueJobs2} as j
      where j.queue = ${queue} and j.id = ${id} and j.worker_id is not null
      for no key update skip locked
    ),
    requested as (
      update ${queueJobs2} as j set cancel_reason = coalesce(j.cancel_reason, ${reason}::text)
      where j.queue = ${queue} and j.id = any(array(select id from held))
      returning j.id
    )
    select r.id, ${channel === void 0 ? sql14`false` : notified(channel, sql14`${REQUESTED}`)} as woke
    from requested as r`;
}

// src/sql/fault-point.ts
var act;
function faultPoint(point) {
  return act?.(point);
}

// src/queue/cancel.ts
var FIRST_WAIT_MS = 10;
var MAX_TRIES = 6;
async function cancel2(db, tables2, id, options, channel) {
  checkId("cancel", id);
  const { reason = "cancelled", force = false } = checkObject2("cancel: its options", options);
  checkBoolean("cancel: force", force);
  let wasThere = false;
  for (let tries = 1, waitMs = FIRST_WAIT_MS; ; tries++, waitMs *= 2) {
    const found2 = await findJob(db, tables2, id);
    if (found2 === void 0) return { cancelled: false, reason: wasThere ? "finished" : "not-found" };
    if ("finishedAt" in found2) return { cancelled: false, reason: "finished" };
    wasThere = true;
    const { queue, attempt } = found2;
    await faultPoint("cancel: found");
    const { message } = describeError(
      new Error(typeof reason === "string" ? reason : shown(reason)),
      attempt
    );
    const record = { attempt, name: "Cancelled", message };
    const cancelled = { id, queue, reason: record, force: force ? { channel } : void 0 };
    if (await cancelJob(db, tables2, cancelled)) return { cancelled: true };
    await faultPoint("cancel: not waiting");
    if (!force && await requestCancel(db, tables2, { id, queue, reason: message, channel }))
      return { cancelled: false, reason: "requested" };
    if (tries === MAX_TRIES) return { cancelled: false, reason: "locked" };
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

// src/queries/check-database.ts
import { sql as sql16 } from "drizzle-orm";
import { getTableConfig as getTableConfig4 } from "drizzle-orm/pg-core";

// src/sql/quoted-name.ts
import { getTableConfig as getTableConfig3 } from "drizzle-orm/pg-core";
function quotedName(table) {
  const { schema, name } = getTableConfig3(table);
  return [schema, name].filter((part) => part !== void 0).map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}

// src/queries/check-grants.ts
import { sql as sql15 } from "drizzle-orm";
var WORKER = {
  queueJobs: ["select", "update", "delete"],
  queueResults: ["select", "insert", "update", "delete"],
  queueWorkers: ["select", "insert", "update", "delete"],
  queuePauses: ["select"]
};
async function checkGrants(db, tables2) {
  const rows = await queryRows(db, tables2, missingGrantsQuery(tables2));
  const [first] = rows;
  if (first === void 0) return;
  const grants = rows.map(({ privilege, name, role }) => `grant ${privilege} on ${name} to ${role};`);
  throw new QueueError(
    `The role ${first.role} may not do all that a worker does. Run \`${grants.join(" ")}\``
  );
}
function missingGrantsQuery(tables2) {
  const needed = Object.entries(WORKER).flatMap(
    ([key, privileges]) => (
      // `Object.entries` loses the type of the keys.
      privileges.map((privilege) => ({
        name: quotedName(tables2[key]),
        privilege,
        of_columns: privilege !== "delete"
      }))
    )
  );
  return sql15`
    select quote_ident(current_user) as role, n.name, n.privilege
    from jsonb_to_recordset(${JSON.stringify(needed)}::text::jsonb)
      as n(name text, privilege text, of_columns bool)
    where not case when n.of_columns then has_any_column_privilege(n.name, n.privilege)
      else has_table_privilege(n.name, n.privilege) end`;
}

// src/queries/check-database.ts
var OLDEST_SUPPORTED = 14e4;
async function checkDatabase(db, tables2) {
  const [server] = await queryRows(db, tables2, serverVersionQuery);
  if (Number(server?.number) < OLDEST_SUPPORTED) throw new UnsupportedPostgresError(String(server?.version));
  for (const table of Object.values(tables2)) {
    const name = quotedName(table);
    const rows = await queryRows(db, tables2, columnsQuery(name));
    const present = new Set(rows.map((row) => row.name));
    if (present.size === 0) throw new MissingMigrationError(`The table ${name} does not exist`);
    const missing = getTableConfig4(table).columns.filter((column) => !present.has(column.name));
    if (missing.length > 0) {
      const names = missing.map((column) => column.name).join(", ");
      throw new MissingMigrationError(`The table ${name} has no column ${names}`);
    }
  }
  await checkGrants(db, tables2);
}
var serverVersionQuery = sql16`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version`;
function columnsQuery(table) {
  return sql16`
    select attname as name from pg_attribute
    where attrelid = to_regclass(${table}) and attnum > 0 and not attisdropped`;
}

// src/queries/find-silent-workers.ts
import { sql as sql17 } from "drizzle-orm";
async function findSilentWorkers(db, tables2, silentMs) {
  const rows = await queryRows(db, tables2, findSilentWorkersQuery(tables2, silentMs));
  return rows.map((row) => ({ name: String(row.name), silentMs: Number(row.silent_ms) }));
}
function findSilentWorkersQuery({ queueWorkers: queueWorkers2 }, silentMs) {
  return sql17`
    select w.name, extract(epoch from statement_timestamp() - w.seen_at)::float8 * 1000 as silent_ms
    from ${queueWorkers2} as w
    where w.seen_at < statement_timestamp() - ${silentMs}::float8 * interval '1 millisecond'
    order by w.seen_at limit 100`;
}

// src/queries/inspect-server.ts
import { sql as sql18 } from "drizzle-orm";
async function inspectServer(db, tables2) {
  const [row = {}] = await queryRows(db, tables2, inspectServerQuery);
  return {
    versionNumber: Number(row.number),
    version: String(row.version),
    readOnly: row.read_only === "on",
    autovacuum: row.autovacuum === "on",
    hasMigrations: row.has_migrations === true
  };
}
var inspectServerQuery = sql18`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version,
      current_setting('transaction_read_only') as read_only, current_setting('autovacuum') as autovacuum,
      exists (select from pg_class where relname = '__drizzle_migrations') as has_migrations`;

// src/queries/inspect-table.ts
import { sql as sql19 } from "drizzle-orm";
import { getTableConfig as getTableConfig5 } from "drizzle-orm/pg-core";
async function inspectTable(db, tables2, table) {
  const [row = {}] = await queryRows(db, tables2, inspectTableQuery(table));
  const parsed = (name) => JSON.parse(String(row[name] ?? "[]"));
  return {
    present: row.present === true,
    readable: row.readable === true,
    columns: parsed("columns"),
    indexes: parsed("indexes"),
    checks: parsed("checks"),
    storage: parsed("storage"),
    otherSchemas: parsed("other_schemas")
  };
}
function inspectTableQuery(table) {
  return sql19`
    with recursive sought as (
      select to_regclass(${quotedName(table)})::oid as id
    ),
    part as (
      select id from sought
      union all
      select i.inhrelid from pg_inherits as i join part as p on i.inhparent = p.id
    )
    select s.id is not null as present, has_table_privilege(s.id, 'select') as readable,
      (
        select json_agg(row_to_json(c)) from (
          select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as "notNull",
            atthasdef or attidentity <> '' as filled
          from pg_attribute where attrelid = s.id and attnum > 0 and not attisdropped order by attnum
        ) as c
      )::text as columns,
      (
        select json_agg(row_to_json(i)) from (
          select n.relname as name, x.indisunique as "isUnique", x.indisprimary as "isPrimary",
            x.indisvalid as "isValid", x.indpred is not null as "isPartial",
            array(
              select pg_get_indexdef(x.indexrelid, k, true)
              from generate_series(1, x.indnkeyatts) as k order by k
            ) as keys,
            array(
              select a.attname from pg_depend as d
              join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
              where d.classid = d.refclassid and d.objid = x.indexrelid
                and d.refobjid = s.id and d.refobjsubid > 0
              group by a.attname order by a.attname
            ) as uses
          from pg_index as x join pg_class as n on n.oid = x.indexrelid
          where x.indrelid = s.id order by n.relname
        ) as i
      )::text as indexes,
      (
        select json_agg(conname order by conname) from pg_constraint where conrelid = s.id and contype = 'c'
      )::text as checks,
      (
        select json_agg(coalesce(array_to_json(t.reloptions), '[]'))
        from part as p join pg_class as t on t.oid = p.id
        where t.relkind = 'r'
      )::text as storage,
      (
        select json_agg(n.nspname order by n.nspname)
        from pg_class as t join pg_namespace as n on n.oid = t.relnamespace
        where t.relname = ${getTableConfig5(table).name} and t.relkind in ('r', 'p')
          and t.oid is distinct from s.id
      )::text as other_schemas
    from sought as s`;
}

// src/queue/check/check-columns.ts
import { getTableConfig as getTableConfig6 } from "drizzle-orm/pg-core";

// src/queue/check/finding.ts
var MIGRATE = "Run `npx drizzle-kit generate` and `npx drizzle-kit migrate`";

// src/queue/check/check-columns.ts
var COMPARABLE = /^(bigint|boolean|date|double precision|integer|jsonb?|real|smallint|text|timestamp with time zone|uuid)$/;
function checkColumns(table, { columns }) {
  const name = quotedName(table);
  const declared = getTableConfig6(table).columns;
  const present = new Map(columns.map((column) => [column.name, column]));
  const missing = declared.filter((column) => !present.has(column.name));
  const known2 = new Set(declared.map((column) => column.name));
  const unexpected = columns.filter((column) => !known2.has(column.name) && column.notNull && !column.filled);
  return [
    ...missing.length === 0 ? [] : [
      {
        code: "column-missing",
        severity: "error",
        message: `The table ${name} has no column ${missing.map((column) => column.name).join(", ")}`,
        fix: `${MIGRATE}: either drizzle-queue was updated, or a migration has not run on this database`
      }
    ],
    ...declared.flatMap((column) => differences(name, column, present.get(column.name))),
    ...unexpected.map(
      (column) => ({
        code: "column-unexpected",
        severity: "error",
        message: `The column ${column.name} of ${name} is NOT NULL without a default, and the Drizzle table does not have it: every insert fails`,
        fix: `Give it a default, or allow null: alter table ${name} alter column "${column.name}" drop not null`
      })
    )
  ];
}
function differences(table, column, found2) {
  if (found2 === void 0) return [];
  const type = column.getSQLType();
  const filled = column.default !== void 0 || column.generatedIdentity !== void 0;
  const wrong = [
    ...COMPARABLE.test(type) && type !== found2.type ? [`is ${found2.type}, not ${type}`] : [],
    ...column.notNull && !found2.notNull ? ["may be null"] : [],
    ...!column.notNull && found2.notNull ? ["is NOT NULL"] : [],
    ...filled && !found2.filled ? ["has lost its default"] : []
  ];
  if (wrong.length === 0) return [];
  return [
    {
      code: "column-differs",
      severity: "error",
      message: `The column ${column.name} of ${table} ${wrong.join(" and ")}`,
      fix: `${MIGRATE}; if there is nothing to generate, somebody has altered the table by hand: \`npx drizzle-kit push\` shows how it differs`
    }
  ];
}

// src/queue/check/check-indexes.ts
import { getTableConfig as getTableConfig7 } from "drizzle-orm/pg-core";
function checkIndexes(table, state) {
  const name = quotedName(table);
  const { checks } = getTableConfig7(table);
  const missingChecks = checks.filter((check4) => !state.checks.includes(check4.name));
  return [
    ...expectedIndexes(table).flatMap((index3) => checkIndex(name, index3, state.indexes)),
    ...state.indexes.filter((index3) => !index3.isValid).map((index3) => invalid(name, index3)),
    ...missingChecks.map(
      (check4) => ({
        code: "check-missing",
        severity: "warning",
        message: `The constraint ${check4.name} of ${name} is missing, so the table takes values that no statement expects`,
        fix: MIGRATE
      })
    )
  ];
}
function expectedIndexes(table) {
  const { columns, indexes, primaryKeys } = getTableConfig7(table);
  const key = primaryKeys[0]?.columns ?? columns.filter((column) => column.primary);
  const primary = {
    name: void 0,
    isPrimary: true,
    isUnique: true,
    isPartial: false,
    keys: key.map((column) => column.name)
  };
  const others = indexes.map(({ config }) => {
    const keys = config.columns.map(
      (column) => "name" in column && typeof column.name === "string" ? column.name : ""
    );
    return {
      name: config.name,
      isPrimary: false,
      isUnique: config.unique,
      isPartial: config.where !== void 0,
      keys: keys.includes("") ? void 0 : keys
    };
  });
  return key.length === 0 ? others : [primary, ...others];
}
function checkIndex(table, expected, present) {
  if (present.some((index3) => matches(expected, index3))) return [];
  const namesake = present.find((index3) => index3.name === expected.name);
  const what = describe(expected);
  const cost = expected.isPrimary ? "the rows of a job are no longer found at once" : expected.isUnique ? "every enqueue with a unique key fails" : "its statements read the whole table";
  const severity = expected.isUnique ? "error" : "warning";
  if (namesake === void 0) {
    const message = `The table ${table} has no ${what}: ${cost}`;
    return [{ code: "index-missing", severity, message, fix: MIGRATE }];
  }
  return [
    {
      code: "index-differs",
      severity,
      message: `The index ${namesake.name} of ${table} is not the ${what} but ${describe(namesake)}: ${cost}`,
      fix: `${MIGRATE}; if there is nothing to generate, drop the index, and let \`npx drizzle-kit push\` make it again`
    }
  ];
}
function matches(expected, index3) {
  if (expected.isPrimary) {
    return index3.isPrimary && sorted(index3.keys) === sorted(expected.keys ?? []);
  }
  return index3.isUnique === expected.isUnique && index3.isPartial === expected.isPartial && (expected.keys === void 0 ? index3.name === expected.name : columnNames(index3.keys).join() === expected.keys.join());
}
function invalid(table, { name, isUnique }) {
  return {
    code: "index-invalid",
    severity: isUnique ? "error" : "warning",
    message: `The index ${name} of ${table} is invalid: a CREATE INDEX CONCURRENTLY has failed, or a partition lacks its part`,
    fix: `reindex index concurrently "${name}" (for a unique index, remove what is twice in the table first); or drop the index and create it again`
  };
}
function describe({ isPrimary, isUnique, isPartial, keys }) {
  const kind = isPrimary ? "primary key" : isUnique ? "unique index" : "index";
  return `${kind} (${keys?.join(", ") ?? "an expression"})${isPartial ? " where \u2026" : ""}`;
}
var sorted = (keys) => columnNames(keys).sort().join();
var columnNames = (keys) => keys.map((key) => key.replaceAll('"', ""));

// src/queue/check/check-presence.ts
import { getTableConfig as getTableConfig8 } from "drizzle-orm/pg-core";
function missingTables(tables2, stateOf, { hasMigrations }) {
  const all = Object.values(tables2);
  const missing = all.filter((table) => !stateOf(table).present);
  const elsewhere = missing.filter((table) => stateOf(table).otherSchemas.length > 0);
  const nowhere = missing.filter((table) => !elsewhere.includes(table));
  return [
    ...elsewhere.length === 0 ? [] : [inOtherSchemas(elsewhere, stateOf)],
    ...nowhere.length === 0 ? [] : [nowhereAtAll(tables2, nowhere, hasMigrations)]
  ];
}
function inOtherSchemas(missing, stateOf) {
  const schemas = [...new Set(missing.flatMap((table) => stateOf(table).otherSchemas))];
  return {
    code: "tables-elsewhere",
    severity: "error",
    message: `This connection does not find ${missing.map(quotedName).join(", ")}, but there are tables of that name in the schema ${schemas.join(", ")}`,
    fix: `Make them with createQueueTables({ schema: pgSchema('${schemas[0]}') }) and give them to createQueue({ tables }), or put the schema into the search_path of this connection`
  };
}
function nowhereAtAll(tables2, missing, hasMigrations) {
  const names = missing.map(quotedName).join(", ");
  const some = missing.length < Object.values(tables2).length;
  const topLevel = `the schema file that drizzle-kit reads must have ${exportOf(tables2)} at its top level`;
  const migrated = hasMigrations ? ", though Drizzle has migrated it" : "";
  return {
    code: "tables-missing",
    severity: "error",
    message: some ? `${names} ${missing.length === 1 ? "does" : "do"} not exist, though other tables of the queue do` : `None of the queue's tables exists in this database${migrated}`,
    fix: some ? `${MIGRATE}. If there is nothing to generate, not all tables are exported: ${topLevel}` : `${MIGRATE}. If there is nothing to generate, the tables are not exported, or inside an object, which drizzle-kit passes over: ${topLevel}`
  };
}
function exportOf(tables2) {
  const { schema, name } = getTableConfig8(tables2.queueJobs);
  const isDefault = name === "queue_jobs";
  if (schema === void 0 && isDefault) return "`export * from 'drizzle-queue/schema'`";
  const names = `{ ${Object.keys(tables2).join(", ")} }`;
  return schema === void 0 ? `\`export const ${names} = createQueueTables({ \u2026 })\`` : `\`export const queueSchema = pgSchema('${schema}')\` and \`export const ${names} = createQueueTables({ schema: queueSchema${isDefault ? "" : ", \u2026"} })\``;
}

// src/queue/check/check-upkeep.ts
import { getTableConfig as getTableConfig9 } from "drizzle-orm/pg-core";
function checkUpkeep(tables2, stateOf) {
  const { queueJobs: queueJobs2, queueResults: queueResults2 } = tables2;
  return [
    ...Object.values(tables2).flatMap((table) => autovacuumOff(table, stateOf(table))),
    ...claimColumnIndexes(queueJobs2, stateOf(queueJobs2)),
    ...untuned(queueJobs2, stateOf(queueJobs2), {
      fillfactor: 50,
      autovacuum_vacuum_scale_factor: 0.02,
      autovacuum_analyze_scale_factor: 0.05
    }),
    ...untuned(queueResults2, stateOf(queueResults2), {
      autovacuum_vacuum_scale_factor: 0.02,
      autovacuum_vacuum_insert_scale_factor: 0.05
    })
  ];
}
function autovacuumOff(table, { storage }) {
  if (!storage.some((options) => options.some((option) => /^autovacuum_enabled=(off|false|no|0)$/.test(option))))
    return [];
  const name = quotedName(table);
  return [
    {
      code: "autovacuum-off",
      severity: "warning",
      message: `Autovacuum is off for ${name}: finished jobs leave dead rows, and nothing removes them`,
      fix: `alter table ${name} reset (autovacuum_enabled)`
    }
  ];
}
function claimColumnIndexes(queueJobs2, { indexes }) {
  const { attempt, fence, workerId, claimedAt, cancelReason, progress } = queueJobs2;
  const written = new Set(
    [attempt, fence, workerId, claimedAt, cancelReason, progress].map((column) => column.name)
  );
  return indexes.flatMap(({ name, uses }) => {
    const columns = uses.filter((column) => written.has(column));
    if (columns.length === 0) return [];
    return [
      {
        code: "index-on-claim-column",
        severity: "warning",
        message: `The index ${name} of ${quotedName(queueJobs2)} has ${columns.join(", ")}, written while jobs are claimed and run: these writes are no HOT updates any more`,
        fix: "Drop it, or do without those columns in it, its predicate included"
      }
    ];
  });
}
function untuned(table, { storage }, advice) {
  const lacks = Object.keys(advice).filter(
    (parameter2) => storage.some((options) => !options.some((option) => option.startsWith(`${parameter2}=`)))
  );
  if (lacks.length === 0) return [];
  const name = quotedName(table);
  const settings = lacks.map((parameter2) => `${parameter2} = ${advice[parameter2]}`).join(", ");
  const isPartitioned = storage.length > 1;
  const where = isPartitioned ? `each partition of ${name}` : name;
  const tuned = isPartitioned ? `PARTITION of ${getTableConfig9(table).name}` : name;
  return [
    {
      code: "not-tuned",
      severity: "hint",
      message: `${where} has no ${lacks.join(", ")}: worth it from hundreds of jobs per second on`,
      fix: `In a custom migration: alter table ${tuned} set (${settings})`
    }
  ];
}

// src/queue/check/check-queue.ts
var SILENT_MS = 3e5;
var INSUFFICIENT_PRIVILEGE = "42501";
async function checkQueue(db, tables2) {
  const server = await inspectServer(db, tables2);
  const findings = checkServer(server);
  const states = /* @__PURE__ */ new Map();
  try {
    for (const table of Object.values(tables2)) states.set(table, await inspectTable(db, tables2, table));
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    return [...findings, permissionDenied(error)];
  }
  const stateOf = (table) => {
    const state = states.get(table);
    if (state === void 0) throw new Error("every table of the queue was inspected");
    return state;
  };
  const all = Object.values(tables2);
  findings.push(...missingTables(tables2, stateOf, server));
  for (const table of all.filter((table2) => stateOf(table2).present)) {
    findings.push(...checkColumns(table, stateOf(table)), ...checkIndexes(table, stateOf(table)));
  }
  findings.push(...checkUpkeep(tables2, stateOf));
  const { queueWorkers: queueWorkers2 } = tables2;
  const { readable, columns } = stateOf(queueWorkers2);
  const asked = [queueWorkers2.name, queueWorkers2.seenAt].map((column) => column.name);
  if (readable && asked.every((name) => columns.some((column) => column.name === name))) {
    findings.push(...await silentWorkers(db, tables2));
  }
  const order = ["error", "warning", "hint"];
  return findings.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}
function checkServer({ versionNumber, version, readOnly, autovacuum }) {
  const findings = [];
  if (versionNumber < OLDEST_SUPPORTED) {
    findings.push({
      code: "postgres-too-old",
      severity: "error",
      message: `drizzle-queue needs PostgreSQL 14 or newer; this server is ${version}`,
      fix: "Upgrade the server"
    });
  }
  if (readOnly) {
    findings.push({
      code: "read-only",
      severity: "error",
      message: "This connection may only read: the server is a standby, or default_transaction_read_only is on",
      fix: "Connect to the primary"
    });
  }
  if (!autovacuum) {
    findings.push({
      code: "autovacuum-off",
      severity: "warning",
      message: "Autovacuum is off on this server: finished jobs leave dead rows, and nothing removes them",
      fix: "alter system set autovacuum = on, and select pg_reload_conf()"
    });
  }
  return findings;
}
function permissionDenied(error) {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return {
    code: "permission-denied",
    severity: "error",
    message: `This role may not look at the tables (${reason})`,
    fix: 'grant usage on schema \u2026 to this role, and the rights that the guide "Schema" lists under "Grants"'
  };
}
async function silentWorkers(db, tables2) {
  const workers = await findSilentWorkers(db, tables2, SILENT_MS);
  return workers.map(({ name, silentMs }) => ({
    code: "worker-silent",
    severity: "warning",
    message: `The worker '${name}' was last seen ${duration(silentMs)} ago, and no other has declared it gone: jobs that it held wait`,
    fix: "Start a worker: it removes the row, and the jobs are due again"
  }));
}
function duration(ms) {
  const minutes = Math.round(ms / 6e4);
  if (minutes < 120) return `${minutes} minutes`;
  return minutes < 2880 ? `${Math.round(minutes / 60)} hours` : `${Math.round(minutes / 1440)} days`;
}

// src/queue/enqueue-from.ts
import { Column, is as is5, SQL as SQL2, sql as sql21 } from "drizzle-orm";

// src/queries/insert-selected-jobs.ts
import { sql as sql20 } from "drizzle-orm";
async function insertSelectedJobs(db, tables2, jobs, wakeUp) {
  const query = insertSelectedJobsQuery(tables2, jobs, wakeUp);
  const [row] = await queryRows(db, tables2, query, { withUsersSql: true });
  const enqueued = Number(row?.enqueued);
  const duplicates = Number(row?.selected ?? enqueued) - enqueued;
  return { enqueued, duplicates, woken: row?.woke === true ? [jobs.queue] : [] };
}
function insertSelectedJobsQuery({ queueJobs: queueJobs2 }, jobs, wakeUp) {
  const own = jobs.own ?? [];
  const names = ownNames(own.map(({ column }) => column));
  const insert = sql20`
      insert into ${queueJobs2}
        (queue, kind, max_attempts, payload, priority, run_at, created_at, unique_key, metadata${names})`;
  const columns = sql20`
        ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, ${jobs.payload},
        (${jobs.priority})::int2, (${jobs.runAt})::timestamptz, statement_timestamp()`;
  const enqueued = wakeUp === void 0 ? sql20`select count(*)::float8 as enqueued, null as woke from inserted` : sql20`select enqueued,
        case when due then ${notified(wakeUp.channel, sql20`${jobs.queue}::text`)} end as woke
      from (
        select count(*)::float8 as enqueued, bool_or(i.run_at <= statement_timestamp()) as due
        from inserted as i
      ) as counted`;
  if (jobs.uniqueKey === void 0) {
    return sql20`
    with inserted as (${insert}
      select ${columns}, null, ${jobs.metadata}${sql20.join(own.map(({ value }) => sql20`, ${value}`))}
      from ${jobs.source}
      returning run_at
    )
    ${enqueued}`;
  }
  return sql20`
    with i as materialized (
      select ${jobs.payload} as payload, (${jobs.priority})::int2 as priority,
        (${jobs.runAt})::timestamptz as run_at, (${jobs.uniqueKey})::text as unique_key,
        ${jobs.metadata} as metadata${sql20.join(
    own.map(({ value }, index3) => sql20`, ${value} as ${sql20.raw(`own_${index3}`)}`)
  )}
      from ${jobs.source}
    ),
    inserted as (
      insert into ${queueJobs2}
        (queue, kind, max_attempts, created_at, payload, priority, run_at, unique_key, metadata${names})
      select ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, statement_timestamp(), i.*
      from i order by unique_key
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning run_at
    )
    select (select count(*) from i)::float8 as selected, e.* from (${enqueued}) as e`;
}

// src/queue/enqueue-from.ts
async function enqueueSelected(db, tables2, jobs, wakeUps) {
  const insert = (wakeUp) => insertSelectedJobs(db, tables2, jobs, wakeUp);
  const { enqueued, duplicates } = wakeUps === void 0 ? await insert() : await wakeUps.allow(db, jobs.mayBeDue ? [jobs.queue] : [], insert);
  return { enqueued, duplicates };
}
function selectedJobs(job, select, options = {}, own = [], maxMetadataBytes = DEFAULT_MAX_PAYLOAD_BYTES) {
  const what = (option) => `enqueueFrom('${job.kind}'): ${option}`;
  checkObject2(what("its options"), options);
  if (typeof select?.as !== "function") throw new TypeError(`${what("the select")} ${NO_SELECT}`);
  if (options.uniqueKey !== void 0 && typeof options.uniqueKey !== "function") {
    throw new TypeError(
      `${what("uniqueKey")} must be a function of the row, which answers an SQL expression`
    );
  }
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
    payload: job.payload === void 0 ? sql21`'null'::jsonb` : payloadOf(source, what("the select")),
    priority: typeof priority === "function" ? sql21`${priority(row)}` : sql21`${checkInteger(what("priority"), priority, 0, MAX_PRIORITY)}`,
    runAt: typeof runAt === "function" ? sql21`${runAt(row)}` : runAt === void 0 ? sql21`statement_timestamp() + ${delayMs}::float8 * interval '1 millisecond'` : sql21`${checkDate(what("runAt"), runAt).toISOString()}`,
    uniqueKey: options.uniqueKey === void 0 ? void 0 : sql21`${options.uniqueKey(row)}`,
    metadata: sql21`${options.metadata === void 0 ? "{}" : metadataToStore(job.kind, options.metadata, maxMetadataBytes)}::text::jsonb`,
    own: own.flatMap(
      (column) => ownSelected(column, Reflect.get(options, column.key), row, what("the options"))
    )
  };
}
function ownSelected(column, given, row, what) {
  if (typeof given === "function") return [{ column, value: sql21`(${given(row)})` }];
  const value = valueOrDefault(column, given);
  if (value !== void 0)
    return [{ column, value: ownValue(column, sql21`${textOf(column, value, what)}::text`) }];
  checkNotNeeded(column, what);
  return [];
}
var NO_SELECT = "must be a Drizzle select, such as db.select({ \u2026 }).from(\u2026)";
function payloadOf(source, what) {
  const described = source;
  const fields = described._?.selectedFields;
  if (fields === void 0) throw new TypeError(`${what} ${NO_SELECT}`);
  return objectOf(fields, source, what);
}
function objectOf(fields, values, what) {
  const pairs = Object.keys(fields).map((key) => {
    const value = Reflect.get(values, key);
    if (is5(value, Column) || is5(value, SQL2) || is5(value, SQL2.Aliased)) return sql21`${key}::text, ${value}`;
    if (typeof value === "object" && value !== null) {
      return sql21`${key}::text, ${objectOf(value, value, what)}`;
    }
    throw new TypeError(`${what} has a field '${key}' that is neither a column nor an SQL expression`);
  });
  const objects = [];
  for (let from = 0; from < pairs.length; from += 50) {
    objects.push(sql21`jsonb_build_object(${sql21.join(pairs.slice(from, from + 50), sql21`, `)})`);
  }
  return objects.length === 1 ? sql21`${objects[0]}` : sql21`(${sql21.join(objects, sql21` || `)})`;
}

// src/queries/find-standing-jobs.ts
import { sql as sql23 } from "drizzle-orm";

// src/sql/json-rows.ts
import { sql as sql22 } from "drizzle-orm";
var MAX_PARAMETER_CHARACTERS = 32 * 1024 * 1024;
function jsonRows(rows, columns) {
  const names = columns.split(",").map((column) => column.trim().split(" ")[0] ?? "");
  const parts = partsOf(rows).map(
    ({ before, rows: rows2 }) => sql22`
        select ${sql22.raw(names.map((name) => `r.${name}`).join(", "))}, ${placeAfter(before)} as place
        from rows from (jsonb_to_recordset(${`[${rows2.join(",")}]`}::text::jsonb) as (${sql22.raw(columns)}))
          with ordinality as r(${sql22.raw(names.join(", "))}, place)`
  );
  return sql22`(${sql22.join(parts, sql22` union all `)})`;
}
function jsonElements(values) {
  const parts = partsOf(values).map(
    ({ before, rows }) => sql22`
        select r.element, ${placeAfter(before)} as place
        from jsonb_array_elements(${`[${rows.join(",")}]`}::text::jsonb)
          with ordinality as r(element, place)`
  );
  return sql22`(${sql22.join(parts, sql22` union all `)})`;
}
function placeAfter(before) {
  return sql22.raw(before === 0 ? "r.place" : `${before} + r.place`);
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
  return sql23`
    select i.place, j.id
    from ${jsonRows(keys, "queue text, kind text, unique_key text")} as i
    join ${queueJobs2} as j on j.queue = i.queue and j.kind = i.kind and j.unique_key = i.unique_key`;
}

// src/queries/insert-jobs.ts
import { sql as sql25 } from "drizzle-orm";

// src/sql/job-rows.ts
import { sql as sql24 } from "drizzle-orm";
var QUEUE = { column: "queue", type: "text", of: (job) => job.queue };
var KIND = { column: "kind", type: "text", of: (job) => job.kind };
var PRIORITY = { column: "priority", type: "int2", of: (job) => job.priority };
var DELAY = { column: "delay_ms", type: "float8", of: (job) => job.delayMs };
var RUN_AT = { column: "run_at_ms", type: "float8", of: (job) => job.runAtMs };
var MAX_ATTEMPTS2 = { column: "max_attempts", type: "int2", of: (job) => job.maxAttempts };
var UNIQUE_KEY = { column: "unique_key", type: "text", of: (job) => job.uniqueKey };
var METADATA = { column: "metadata", type: "jsonb", of: (job) => job.metadata };
var SETTINGS = [QUEUE, KIND, PRIORITY, DELAY, RUN_AT, MAX_ATTEMPTS2, UNIQUE_KEY, METADATA];
function jobRows(jobs, own = []) {
  const [first] = jobs;
  if (first === void 0) throw new TypeError("jobRows needs a job");
  if (jobs.length === 1 && own.length === 0) {
    return sql24`
      select ${first.queue}::text as queue, ${first.kind}::text as kind,
        ${first.payload}::text::jsonb as payload, ${first.priority}::int2 as priority,
        coalesce(to_timestamp(${first.runAtMs}::float8 / 1000),
          statement_timestamp() + ${first.delayMs}::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${first.maxAttempts}::int2 as max_attempts,
        ${first.uniqueKey}::text as unique_key, ${first.metadata}::text::jsonb as metadata, 1 as place`;
  }
  const ownSettings = own.map(toOwnSetting);
  const varying = varyingSettings(first, jobs, ownSettings);
  const value = (setting) => varying.includes(setting) ? sql24.raw(`r.${setting.column}`) : parameter(setting, first);
  const { payload, rows } = payloads(jobs, varying);
  return sql24`
      select ${value(QUEUE)} as queue, ${value(KIND)} as kind, ${payload} as payload,
        ${value(PRIORITY)} as priority,
        coalesce(to_timestamp(${value(RUN_AT)} / 1000),
          statement_timestamp() + ${value(DELAY)} * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${value(MAX_ATTEMPTS2)} as max_attempts,
        ${value(UNIQUE_KEY)} as unique_key,
        ${value(METADATA)} as metadata${sql24.join(
    ownSettings.map(({ column, text: text5, leftOut }) => {
      const given = ownValue(column, value(text5));
      const anyLeftOut = varying.includes(leftOut);
      const chosen = anyLeftOut ? sql24`case when ${value(leftOut)} then ${ownDefault(column)} else ${given} end` : given;
      return sql24`, ${chosen} as ${sql24.raw(`own_${column.index}`)}`;
    })
  )}, r.place from ${rows} as r`;
}
function toOwnSetting(column) {
  const { index: index3 } = column;
  return {
    column,
    text: { column: `own_${index3}`, type: "text", of: (job) => job.own?.[index3] ?? null },
    leftOut: { column: `own_${index3}_left_out`, type: "bool", of: (job) => job.own?.[index3] === void 0 }
  };
}
function varyingSettings(first, jobs, own) {
  const ownSettings = own.flatMap(({ text: text5, leftOut }) => [text5, leftOut]);
  const same = jobs.every(
    (job) => job.queue === first.queue && job.kind === first.kind && job.priority === first.priority && job.delayMs === first.delayMs && job.runAtMs === first.runAtMs && job.maxAttempts === first.maxAttempts && job.uniqueKey === first.uniqueKey && job.metadata === first.metadata
  );
  const settings = same ? ownSettings : [...SETTINGS, ...ownSettings];
  return settings.filter(({ of }) => jobs.some((job) => of(job) !== of(first)));
}
function parameter({ type, of }, job) {
  return type === "jsonb" ? sql24`${of(job)}::text::jsonb` : sql24`${of(job)}::${sql24.raw(type)}`;
}
function payloads(jobs, varying) {
  if (varying.length === 0) {
    return { payload: sql24`r.element`, rows: jsonElements(jobs.map(({ payload }) => payload)) };
  }
  const rows = jsonRows(
    jobs.map((job) => rowOf(job, varying)),
    ["payload jsonb", ...varying.map(({ column, type }) => `${column} ${type}`)].join(", ")
  );
  return { payload: sql24`coalesce(r.payload, 'null'::jsonb)`, rows };
}
function rowOf(job, varying) {
  const settings = varying.map(({ column, type, of }) => {
    const value = of(job);
    return `,"${column}":${type === "jsonb" ? value : JSON.stringify(value)}`;
  });
  return `{"payload":${job.payload}${settings.join("")}}`;
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
  const unlessDuplicate = jobs.some(hasKey) ? UNLESS_DUPLICATE : sql25``;
  const own = givenColumns(queueJobs2, jobs);
  const insert = sql25`
    insert into ${queueJobs2} (${COLUMNS}${ownNames(own)})
    select ${COLUMNS}${ownValues(own)} from (${jobRows(jobs, own)}) as i order by place${unlessDuplicate}
    returning id`;
  if (wakeUp === void 0) return insert;
  return sql25`
    with inserted as (${insert}, queue, run_at)
    select i.id, ${woke(jobs, wakeUp)} from inserted as i`;
}
function insertKeyedJobsQuery({ queueJobs: queueJobs2 }, jobs, wakeUp) {
  const own = givenColumns(queueJobs2, jobs);
  return sql25`
    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence(${quotedName(queueJobs2)}, 'id')::regclass as sequence) as s,
        (select * from (${jobRows(jobs, own)}) as i order by place) as o
    ),
    inserted as (
      insert into ${queueJobs2} (id, ${COLUMNS}${ownNames(own)}) overriding system value
      select id, ${COLUMNS}${ownValues(own)} from numbered
      order by queue, kind, unique_key, place${UNLESS_DUPLICATE}
      returning id, queue, run_at
    )
    select n.place, i.id, ${wakeUp === void 0 ? sql25`null as woke` : woke(jobs, wakeUp)}
    from inserted as i join numbered as n on n.id = i.id`;
}
var COLUMNS = sql25.raw(
  "queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata"
);
function givenColumns(queueJobs2, jobs) {
  return ownColumnsOf(queueJobs2).flatMap(
    (column, index3) => jobs.some(({ own }) => own?.[index3] !== void 0) ? [{ ...column, index: index3 }] : []
  );
}
function ownValues(own) {
  return sql25.raw(own.map(({ index: index3 }) => `, own_${index3}`).join(""));
}
var UNLESS_DUPLICATE = sql25`
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing`;
function woke(jobs, { channel, queues }) {
  const mixed = jobs.some(({ queue }) => queue !== jobs[0]?.queue);
  return sql25`case when i.run_at <= statement_timestamp()${mixed ? sql25` and ${JSON.stringify(queues)}::text::jsonb @> to_jsonb(i.queue)` : sql25``} then ${notified(channel, sql25`i.queue`)} end as woke`;
}
function hasKey({ uniqueKey }) {
  return uniqueKey !== null;
}

// src/queue/enqueue-jobs.ts
var MAX_INSERTS = 10;
async function enqueueJobs(db, tables2, jobs, wakeUps) {
  const answers = new Array(jobs.length);
  let open = jobs.map((job, index3) => ({ job, index: index3 }));
  for (let tries = 0; open.length > 0; tries++) {
    if (tries === MAX_INSERTS) {
      throw new QueueError(
        `A live job with the same unique key came and went ${MAX_INSERTS} times during an enqueue, or it is hidden from this role by row-level security (then make the tenant a part of the key)`
      );
    }
    open = answer2(open, await insert(jobsOf(open)), false);
    if (open.length === 0) break;
    await faultPoint("enqueue: refused");
    open = answer2(open, await findStandingJobs(db, tables2, jobsOf(open)), true);
    if (open.length > 0) await faultPoint("enqueue: nobody stands");
  }
  return answers;
  async function insert(jobs2) {
    if (wakeUps === void 0) return (await insertJobs(db, tables2, jobs2)).ids;
    const queues = jobs2.filter(mayBeDue).map(({ queue }) => queue);
    return (await wakeUps.allow(db, queues, (wakeUp) => insertJobs(db, tables2, jobs2, wakeUp))).ids;
  }
  function answer2(asked, ids, duplicate) {
    return asked.filter(({ index: index3 }, at) => {
      const id = ids[at];
      if (id !== void 0) answers[index3] = { id, duplicate };
      return id === void 0;
    });
  }
}
function jobsOf(open) {
  return open.map(({ job }) => job);
}

// src/queries/insert-one-job.ts
import { sql as sql26 } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
function insertOneJobQuery(db, tables2, job, wakeUp) {
  const builder = new QueryBuilder();
  const { queueJobs: queueJobs2 } = tables2;
  const inserted = builder.$with("inserted", {}).as(sql26`${insertJobsQuery(tables2, [job])}, run_at`);
  const standing = job.uniqueKey === null ? sql26`null` : sql26`(
        select j.id from ${queueJobs2} as j
        where j.queue = ${job.queue} and j.kind = ${job.kind} and j.unique_key = ${job.uniqueKey})`;
  const fields = {
    id: sql26`coalesce(i.id, ${standing})`.mapWith(Number).as("id"),
    // Part of a column that is read, or Postgres may leave the notification out.
    duplicate: (wakeUp === void 0 ? sql26`i.id is null` : sql26`
        case when i.run_at <= statement_timestamp()
          then not (${notified(wakeUp.channel, sql26`${job.queue}::text`)}) else i.id is null end`).as("duplicate")
  };
  const enqueued = builder.$with("enqueued", fields).as(sql26`
    select ${fields.id.sql} as id, ${fields.duplicate.sql} as duplicate
    from (select 1) as one left join inserted as i on true`);
  return primaryOf(db).with(inserted, enqueued).select().from(enqueued).$withCache(false);
}
function primaryOf(db) {
  if (typeof db?.with !== "function" || typeof Reflect.get(db, "execute") !== "function")
    throw new TypeError(NO_DATABASE);
  return Reflect.get(db, "$primary") ?? db;
}

// src/queue/enqueue-query.ts
function enqueueQuery(db, tables2, job, payload, options, {
  own,
  wakeUps,
  maxPayloadBytes
}) {
  const made = newJob(job, payload, options, maxPayloadBytes);
  if ("then" in made) {
    made.then(void 0, () => void 0);
    throw new TypeError(
      `enqueueQuery('${job.kind}'): the payload's schema is asynchronous, and a query must be there at once; use enqueue, or a schema without async checks`
    );
  }
  const wakeUp = mayBeDue(made) ? wakeUps?.draw(made.queue) : void 0;
  return insertOneJobQuery(db, tables2, withOwn(own, made, options), wakeUp);
}

// src/queries/list-jobs.ts
import { sql as sql27 } from "drizzle-orm";
async function listJobs(db, tables2, page) {
  const rows = await queryRows(db, tables2, listJobsQuery(tables2, page));
  const own = ownColumnsOf(tables2.queueJobs);
  return rows.map((row) => toJobRecord(row, own));
}
function listJobsQuery(tables2, page) {
  const { kind, queue, state, before, limit, own = [] } = page;
  const where = (table, id, stateText) => {
    const column = (name) => sql27.raw(`${table}.${name}`);
    const conditions = [
      before === void 0 ? void 0 : sql27`${column(id)} < ${before}`,
      queue === void 0 ? void 0 : sql27`${column("queue")} = ${queue}`,
      kind === void 0 ? void 0 : sql27`${column("kind")} = ${kind}`,
      state === void 0 ? void 0 : sql27`${stateText} = ${state}`,
      ...own.map((wanted) => is6(column(wanted.column.name), wanted))
    ].filter((condition) => condition !== void 0);
    const all = conditions.length === 0 ? sql27`true` : sql27.join(conditions, sql27` and `);
    return sql27`${all} order by ${column(id)} desc limit ${limit}`;
  };
  const halves = [
    state === void 0 || isLive(state) ? sql27`(${liveRecords(tables2, where("j", "id", liveState))})` : void 0,
    state === void 0 || !isLive(state) ? sql27`(${resultRecords(tables2, where("r", "job_id", sql27.raw("r.state")))})` : void 0
  ].filter((half) => half !== void 0);
  return sql27`
    select * from (
      ${sql27.join(halves, sql27` union all `)}
    ) as record
    order by id desc limit ${limit}`;
}
function is6(column, { column: own, text: text5 }) {
  return text5 === null ? sql27`${column} is null` : sql27`${column} = ${ownValue(own, sql27`${text5}::text`)}`;
}
function isLive(state) {
  return state === "waiting" || state === "scheduled" || state === "due" || state === "running";
}

// src/queue/list.ts
async function list(db, tables2, filter) {
  checkObject2("list: its filter", filter);
  const limit = checkInteger("list: limit", filter.limit ?? 50, 1, 1e3);
  if (filter.job !== void 0) checkDefinition("list", filter.job);
  if (filter.job !== void 0 && filter.kind !== void 0) {
    throw new TypeError("list: job and kind exclude each other");
  }
  if (filter.cursor !== void 0) checkInteger("list: cursor", filter.cursor, 1, Number.MAX_SAFE_INTEGER);
  if (filter.kind !== void 0) checkText2("list: kind", filter.kind, MAX_NAME_BYTES);
  if (filter.queue !== void 0) checkText2("list: queue", filter.queue, MAX_NAME_BYTES);
  const records = await listJobs(db, tables2, {
    kind: filter.job?.kind ?? filter.kind,
    queue: filter.queue,
    state: filter.state === void 0 ? void 0 : checkState(filter.state),
    before: filter.cursor,
    limit: limit + 1,
    own: ownWanted(ownColumnsOf(tables2.queueJobs), filter)
  });
  const jobs = records.slice(0, limit);
  return { jobs, nextCursor: records.length > limit ? jobs.at(-1)?.id : void 0 };
}
var STATES = {
  waiting: true,
  scheduled: true,
  due: true,
  running: true,
  completed: true,
  discarded: true,
  cancelled: true
};
function checkState(state) {
  if (typeof state === "string" && Object.hasOwn(STATES, state)) return state;
  throw new TypeError(`list: state must be one of ${Object.keys(STATES).join(", ")}; got ${shown(state)}`);
}

// src/queries/redrive-jobs.ts
import { sql as sql28 } from "drizzle-orm";
async function redriveJobs(db, tables2, redrive2, wakeUp) {
  const [row] = await queryRows(db, tables2, redriveJobsQuery(tables2, redrive2, wakeUp));
  const redriven = Number(row?.redriven);
  return { redriven, duplicates: Number(row?.discarded) - redriven };
}
function redriveJobsQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, redrive2, wakeUp) {
  const own = ownColumnsOf(queueJobs2);
  const { id, kind, queue, finishedAfter, finishedBefore, limit } = redrive2;
  const conditions = [
    sql28`r.state = 'discarded'`,
    id === void 0 ? void 0 : sql28`r.job_id = ${id}`,
    kind === void 0 ? void 0 : sql28`r.kind = ${kind}`,
    queue === void 0 ? void 0 : sql28`r.queue = ${queue}`,
    finishedAfter === void 0 ? void 0 : sql28`r.finished_at >= ${finishedAfter.toISOString()}::timestamptz`,
    finishedBefore === void 0 ? void 0 : sql28`r.finished_at < ${finishedBefore.toISOString()}::timestamptz`
  ].filter((condition) => condition !== void 0);
  return sql28`
    with discarded as materialized (
      select r.* from ${queueResults2} as r
      where ${sql28.join(conditions, sql28` and `)}
      order by r.job_id limit ${limit ?? null}::int8
      for no key update skip locked
    ),
    redriven as (
      insert into ${queueJobs2} (id, queue, kind, payload, priority, run_at, attempt, max_attempts,
        fence, unique_key, errors, metadata, created_at${ownNames(own)}) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, statement_timestamp(), 0, d.max_attempts,
        d.fence, d.unique_key, d.errors, d.metadata, d.created_at${ownNames(own, "d.")}
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue
    ),
    removed as (
      delete from ${queueResults2} as r
      where (r.job_id, r.queue) in (select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven,
      (select count(*) from discarded)::float8 as discarded${wakeUp === void 0 ? sql28`` : sql28`,
      (
        select count(${notified(wakeUp.channel, sql28`d.queue`)})
        from (select distinct queue from redriven) as d
      )::float8 as woken`}`;
}

// src/queue/wake-ups.ts
var INTERVAL_MS = 50;
var BURST = 5;
var MAX_QUEUES = 1e3;
var ANY_QUEUE = "";
var WakeUps = class {
  /** @param now a monotonic clock in milliseconds */
  constructor(channel, now2 = () => performance.now()) {
    this.channel = channel;
    this.now = now2;
  }
  /**
   * When each queue's bucket will be full again, on the clock of `now`; the bucket is empty when that is
   * `BURST` intervals away.
   */
  #fullAt = /* @__PURE__ */ new Map();
  /** The queues that an open transaction has already notified: their workers hear it at the commit. */
  #notifiedBy = /* @__PURE__ */ new WeakMap();
  /**
   * Runs a statement with the queues that it may notify, and counts those that it did notify: none if it
   * failed, inserted nothing, or inserted no due job.
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
  /**
   * The permission to notify one queue, for a statement that is sent later, if at all. It counts as used,
   * since nobody reports whether it ran.
   */
  draw(queue) {
    return this.#draw(queue) ? { channel: this.channel, queues: [queue] } : void 0;
  }
  #take(db, queue) {
    return !this.#notifiedBy.get(db)?.has(queue) && this.#draw(queue);
  }
  #draw(queue) {
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
  /** A full bucket behaves like no bucket. */
  #forgetFull(now2) {
    for (const [queue, fullAt] of this.#fullAt) if (fullAt <= now2) this.#fullAt.delete(queue);
  }
};

// src/queue/redrive.ts
async function redrive(db, tables2, which, wakeUps) {
  const filter = typeof which === "number" ? { id: checkId("redrive", which) } : checkFilter(which);
  if (wakeUps === void 0) return await redriveJobs(db, tables2, filter);
  const key = typeof which === "number" ? ANY_QUEUE : which.queue ?? ANY_QUEUE;
  const { redriven, duplicates } = await wakeUps.allow(db, [key], async (wakeUp) => {
    const answer2 = await redriveJobs(db, tables2, filter, wakeUp);
    return { ...answer2, woken: answer2.redriven > 0 && wakeUp !== void 0 ? [key] : [] };
  });
  return { redriven, duplicates };
}
function checkFilter(filter) {
  checkObject2("redrive: its filter", filter);
  const { kind, queue, limit, finishedAfter, finishedBefore } = filter;
  if (kind !== void 0) checkText2("redrive: kind", kind, MAX_NAME_BYTES);
  if (queue !== void 0) checkText2("redrive: queue", queue, MAX_NAME_BYTES);
  if (finishedAfter !== void 0) checkDate("redrive: finishedAfter", finishedAfter);
  if (finishedBefore !== void 0) checkDate("redrive: finishedBefore", finishedBefore);
  if (limit !== void 0) checkInteger("redrive: limit", limit, 1, Number.MAX_SAFE_INTEGER);
  return filter;
}

// src/queue/queue.ts
var Queue = class {
  constructor(tables2, { wakeUps = true, maxPayloadBytes = DEFAULT_MAX_PAYLOAD_BYTES } = {}) {
    this.tables = tables2;
    checkSameOwnColumns(tables2.queueJobs, tables2.queueResults);
    this.#own = ownColumnsOf(tables2.queueJobs);
    this.#wakeUps = wakeUps ? new WakeUps(wakeChannel(tables2)) : void 0;
    this.#maxPayloadBytes = maxPayloadBytes;
  }
  #wakeUps;
  #maxPayloadBytes;
  #own;
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
    const made = await newJob(job, payload, options, this.#maxPayloadBytes);
    const jobs = [withOwn(this.#own, made, options)];
    const [enqueued] = await enqueueJobs(db, this.tables, jobs, this.#wakeUps);
    if (enqueued === void 0) throw new QueueError("The insert returned no row");
    return enqueued;
  }
  /**
   * The query that enqueues one job, not yet sent: for drivers whose only transaction is a batch of queries,
   * such as Neon's over HTTP.
   *
   * ```ts
   * await db.batch([db.insert(orders).values(order), queue.enqueueQuery(db, sendReceipt, payload)]);
   * ```
   *
   * Under concurrency: as {@link enqueue}; but it is a single statement, so it cannot always return the id of
   * a duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError at once, also when the payload's schema is
   * asynchronous
   */
  enqueueQuery(db, job, ...[payload, options]) {
    checkDefinition("enqueueQuery", job);
    return enqueueQuery(db, this.tables, job, payload, options, {
      own: this.#own,
      wakeUps: this.#wakeUps,
      maxPayloadBytes: this.#maxPayloadBytes
    });
  }
  /**
   * Enqueues any number of jobs of one kind, in one statement; the answers are in input order. A key that
   * repeats within the input is a duplicate of its first use. All or nothing: one invalid entry, and none is
   * sent.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   */
  async enqueueMany(db, job, entries) {
    checkDefinition("enqueueMany", job);
    if (!Array.isArray(entries)) throw new TypeError(`enqueueMany takes an array; got ${shown(entries)}`);
    const jobs = [];
    for (const entry of entries) {
      if (typeof entry !== "object" || entry === null)
        checkObject2(`enqueueMany('${job.kind}'): an entry`, entry);
      const made = newJob(job, entry.payload, entry, this.#maxPayloadBytes);
      jobs.push(withOwn(this.#own, "then" in made ? await made : made, entry));
    }
    return await enqueueJobs(db, this.tables, jobs, this.#wakeUps);
  }
  /**
   * Enqueues one job per row of a Drizzle select, as one `INSERT … SELECT`: a million jobs without a round
   * trip each. A row becomes the payload, with the select's own keys, as Postgres writes it in JSON. Rows are
   * neither validated nor measured here; a worker validates them after its claim.
   *
   * ```ts
   * const due = tx.select({ userId: users.id }).from(users).where(lt(users.trialEndsAt, sql`now()`));
   * await queue.enqueueFrom(tx, remindUser, due, { uniqueKey: (row) => sql`${row.userId}::text` });
   * ```
   */
  async enqueueFrom(db, job, select, ...[options]) {
    checkDefinition("enqueueFrom", job);
    const jobs = selectedJobs(job, select, options, this.#own, this.#maxPayloadBytes);
    return await enqueueSelected(db, this.tables, jobs, this.#wakeUps);
  }
  async find(db, jobOrId, id) {
    if (typeof jobOrId === "number") return await findJob(db, this.tables, checkId("find", jobOrId));
    checkDefinition("find", jobOrId);
    const record = await findJob(db, this.tables, checkId("find", id));
    return record?.kind === jobOrId.kind ? record : void 0;
  }
  /**
   * Live jobs and results in one list, newest id first, a page at a time. A job keeps its id for life, so one
   * that finishes between two pages is neither missed nor listed twice.
   */
  async list(db, filter = {}) {
    return await list(db, this.tables, filter);
  }
  /**
   * Ends a waiting job (scheduled or due). For a running one it makes a request: within a second its
   * handler's signal is aborted with a `JobCancelledError`, in whichever process it runs. If the attempt then
   * ends in any way other than completed, the job ends as cancelled; it never runs again. With `force` a
   * running job ends at once: its handler's signal is aborted too, and the handler no longer has any effect
   * on the job. The answer says which.
   *
   * Under concurrency: when it meets a claim or the end of an attempt, one of the two wins, never both. A
   * handler that completes its job anyway, by returning or by a `complete(tx)` that commits, has completed
   * it.
   */
  async cancel(db, id, reasonOrOptions = {}) {
    const options = typeof reasonOrOptions === "string" ? { reason: reasonOrOptions } : reasonOrOptions;
    return await cancel2(db, this.tables, id, options, this.#wakeUps?.channel);
  }
  /**
   * Pauses a queue. Within a second workers begin no more of its jobs and give back what they have claimed
   * ahead; `drain` and `runNext` begin none either. Running jobs and enqueueing go on. The pause lasts until
   * {@link resume}, across restarts. Answers `false` when the queue was paused already.
   *
   * In a transaction it takes effect at the commit.
   */
  async pause(db, queue) {
    checkText2("pause: queue", queue, MAX_NAME_BYTES);
    return await pauseQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }
  /**
   * Ends the pause of a queue; workers learn of it within a second. Answers `false` when it was not paused.
   */
  async resume(db, queue) {
    checkText2("resume: queue", queue, MAX_NAME_BYTES);
    return await resumeQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }
  /** The paused queues, by name, and since when. */
  async paused(db) {
    return await findPauses(db, this.tables);
  }
  /**
   * Puts discarded jobs back, one by id or many by filter: due now, with all their attempts again, under
   * their old ids. A job whose unique key a live job has stays discarded and is counted in `duplicates`.
   *
   * Under concurrency: two redrives of the same jobs put each back once.
   */
  async redrive(db, which) {
    return await redrive(db, this.tables, which, this.#wakeUps);
  }
  /**
   * What is wrong with the set-up of the database, and what to do about it, errors first. Empty when all is
   * well.
   */
  check(db) {
    return checkQueue(db, this.tables);
  }
};

// src/queue/create-queue.ts
function createQueue(options = {}) {
  checkQueueOptions(options);
  return new Queue(options.tables ?? { queueJobs, queueResults, queueWorkers, queuePauses }, options);
}

// src/worker/attempt/handler.ts
function handle(job, run) {
  checkDefinition("handle", job);
  if (typeof run !== "function") throw new TypeError(`handle('${job.kind}') takes a function`);
  return { job, run };
}
function handlersByKind(handlers) {
  if (!Array.isArray(handlers)) throw new TypeError(`handlers must be an array; got ${shown(handlers)}`);
  if (handlers.length === 0)
    throw new UnknownKindError("A worker needs at least one handler: handle(job, function)");
  const byKind = /* @__PURE__ */ new Map();
  for (const handler of handlers) {
    if (typeof handler?.run !== "function") {
      throw new TypeError(`handlers must hold what handle(job, function) answers; got ${shown(handler)}`);
    }
    checkDefinition("A handler", handler.job);
    const { kind } = handler.job;
    if (byKind.has(kind)) throw new UnknownKindError(`There are two handlers for the kind '${kind}'`);
    byKind.set(kind, handler);
  }
  return byKind;
}

// src/worker/time/sleep.ts
async function sleep(ms, signal) {
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

// src/queries/register-worker.ts
import { sql as sql29 } from "drizzle-orm";
async function registerWorker(db, tables2, worker) {
  const [row] = await queryRows(db, tables2, registerWorkerQuery(tables2, worker));
  return Number(row?.id);
}
function registerWorkerQuery({ queueWorkers: queueWorkers2 }, { name, queues }) {
  return sql29`
    insert into ${queueWorkers2} (name, queues) values (${name}, ${JSON.stringify(queues)}::text::jsonb)
    returning id`;
}

// src/worker/attempt/events.ts
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
      if (event === "error") print(...args);
      return;
    }
    const told = withoutParameters(event, args);
    for (const listener of [...listeners]) {
      try {
        listener(...told);
      } catch (error) {
        if (event === "error") print({ error, during: "a listener of its errors" });
        else this.emit("error", { error, during: `a listener of '${event}'` });
      }
    }
  }
  /** A map cannot say that the listeners under a key are that key's; `on` is the only way in. */
  #of(event) {
    return this.#listeners.get(event) ?? /* @__PURE__ */ new Set();
  }
};
function withoutParameters(event, args) {
  if (event !== "error" && event !== "polling") return args;
  const [told] = args;
  return [{ ...told, error: withoutQuery(told.error) }];
}
function print({ error, during }) {
  console.error("drizzle-queue worker:", { during, ...describeThrown(error) });
}

// src/worker/background.ts
import { setMaxListeners } from "node:events";

// src/worker/time/resolves-within.ts
async function resolvesWithin(promise, ms) {
  return await resultWithin(
    promise.then(() => true),
    ms
  ) === true;
}
async function resultWithin(promise, ms) {
  const over = new AbortController();
  const late = sleep(ms, over.signal).then(() => void 0);
  try {
    return await Promise.race([promise, late]);
  } finally {
    over.abort();
  }
}
var TURN_MS = 250;
async function settlesWithin(promise, ms) {
  const settled = promise.then(
    () => void 0,
    () => void 0
  );
  for (let leftMs = ms; leftMs > 0; leftMs -= TURN_MS) {
    if (await resolvesWithin(settled, Math.min(leftMs, TURN_MS))) return true;
  }
  return false;
}

// src/worker/background.ts
var Background = class {
  #events;
  #ending = new AbortController();
  #over = Promise.resolve();
  constructor(events) {
    this.#events = events;
    setMaxListeners(0, this.#ending.signal);
  }
  /** Starts the parts. What one of them throws is an `error` event; the others go on. */
  start(parts) {
    const runs = parts.map((part) => this.#run(part));
    this.#over = Promise.all([this.#over, ...runs]);
  }
  /**
   * Ends all parts, and waits for them, at most `ms` milliseconds: a part may wait for a database that does
   * not answer. Answers whether they have ended.
   */
  async end(ms) {
    this.#ending.abort();
    return await resolvesWithin(this.#over, ms);
  }
  async #run(part) {
    try {
      await part.run(this.#ending.signal);
    } catch (error) {
      this.#events.emit("error", { error, during: "running in the background" });
    }
  }
};

// src/worker/on-first-signal.ts
function onFirstSignal(stop) {
  const onSignal = () => {
    forget();
    stop();
  };
  const forget = () => {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return forget;
}

// src/worker/options.ts
import { hostname } from "node:os";
var DEFAULT_CONCURRENCY = 10;
var WEEK_MS = 7 * 24 * 36e5;
function checkRunOptions(caller, options) {
  checkObject2(`${caller}: its options`, options);
  if (typeof options.queue?.tables !== "object") {
    throw new TypeError(`${caller}: queue must be what createQueue() answers; got ${shown(options.queue)}`);
  }
  return handlersByKind(options.handlers);
}
function workerSettings(options) {
  const what = (setting) => `createWorker: ${setting}`;
  checkRunOptions("createWorker", options);
  const { retentionMs = WEEK_MS } = options;
  return {
    concurrencyByQueue: concurrencyByQueue(options.handlers, options.queues),
    listen: checkBoolean(what("listen"), options.listen ?? true),
    pollIntervalMs: checkDurationMs(what("pollIntervalMs"), options.pollIntervalMs ?? 75, 5, 6e4),
    shutdownTimeoutMs: checkDurationMs(
      what("shutdownTimeoutMs"),
      options.shutdownTimeoutMs ?? 25e3,
      0,
      36e5
    ),
    retentionMs: retentionMs === Number.POSITIVE_INFINITY ? retentionMs : checkDurationMs(what("retentionMs"), retentionMs, 0, MAX_DELAY_MS),
    reconnectMs: checkDurationMs(what("reconnectMs"), options.reconnectMs ?? 2500, 1e3, 6e4),
    silentMs: checkDurationMs(what("silentMs"), options.silentMs ?? 3e4, 15e3, 36e5),
    frozenMs: checkDurationMs(what("frozenMs"), options.frozenMs ?? 6e4, 15e3, 36e5),
    name: checkText2(what("name"), options.name ?? `${hostname()}:${process.pid}`, MAX_NAME_BYTES)
  };
}
function concurrencyByQueue(handlers, queues) {
  const named = new Set(handlers.map(({ job }) => job.queue));
  if (queues === void 0) return new Map([...named].map((queue) => [queue, DEFAULT_CONCURRENCY]));
  checkObject2("createWorker: queues", queues);
  const served = Object.entries(queues).map(([queue, settings]) => {
    const what = `createWorker: queues['${queue}']`;
    const { concurrency = DEFAULT_CONCURRENCY } = checkObject2(what, settings);
    return [
      checkText2("createWorker: the name of a queue", queue, MAX_NAME_BYTES),
      checkInteger(`${what}.concurrency`, concurrency, 1, 1e4)
    ];
  });
  if (served.length === 0)
    throw new TypeError("createWorker: queues names no queue; leave it out to serve all");
  for (const { job } of handlers) {
    if (queues[job.queue] === void 0) {
      process.emitWarning(
        `This worker has a handler for '${job.kind}', whose queue '${job.queue}' is not among its queues: ` + Object.keys(queues).join(", "),
        "DrizzleQueueWarning"
      );
    }
  }
  return new Map(served);
}

// src/drivers/listen.ts
function aborted(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

// src/drivers/runner-on.ts
import { PgDialect } from "drizzle-orm/pg-core";
var dialect = new PgDialect();
function runnerOn(query) {
  return {
    execute(statement) {
      const { sql: sql55, params } = dialect.sqlToQuery(statement.getSQL());
      return query(sql55, params);
    }
  };
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
          const runner = runnerOn((text5, values) => listener.query(text5, values));
          if (!signal.aborted) events.ready({ runner, destroy: reject });
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

// src/drivers/shared-connection.ts
var known = /* @__PURE__ */ new WeakMap();
var SharedConnection = class _SharedConnection {
  #listen;
  #client;
  /** What postgres.js does about a loss: it listens again, for all who are still in `channels`. */
  #listenAgain;
  #members = /* @__PURE__ */ new Set();
  #over = false;
  runner;
  constructor(listen, client, unsafe) {
    this.#listen = listen;
    this.#client = client;
    const { options } = client;
    const onClose = options.onclose;
    this.#listenAgain = () => onClose?.();
    options.onclose = () => this.destroy(new Error("The connection that listens was closed"));
    this.runner = runnerOn(
      (text5, parameters) => (
        // It would open another connection, which nobody closes.
        this.#over ? Promise.reject(closed()) : unsafe.call(client, text5, parameters)
      )
    );
  }
  /**
   * The connection that a call of `listen` has just begun to use.
   *
   * @returns `undefined` for Bun, and for a postgres.js of other insides: there a loss goes unnoticed, and on the connection that
   *   replaces a lost one nobody would hold a worker's lock
   */
  static of(listen) {
    const { sql: client, channels } = listen;
    if (client === void 0 || channels === void 0) return void 0;
    const { max, onclose } = client.options;
    const { unsafe } = client;
    if (max !== 1 || onclose === void 0 || unsafe === void 0) return void 0;
    const shared = known.get(client) ?? new _SharedConnection(listen, client, unsafe);
    known.set(client, shared);
    return shared;
  }
  /** One more that listens; `lost` rejects when the connection is lost. */
  join(channel, onNotify) {
    let lose = () => void 0;
    const lost = new Promise((_, reject) => {
      lose = reject;
    });
    lost.catch(() => void 0);
    const member = { channel, onNotify, lose };
    this.#members.add(member);
    return { lost, leave: () => this.#leave(member) };
  }
  destroy(reason) {
    if (this.#over) return;
    const members = [...this.#members];
    for (const member of members) this.#forget(member);
    this.#close();
    this.#listenAgain();
    for (const { lose } of members) lose(reason);
  }
  #leave(member) {
    if (this.#over) return;
    this.#forget(member);
    if (Object.keys(this.#listen.channels ?? {}).length === 0) this.#close();
  }
  #forget(member) {
    this.#members.delete(member);
    const { channels } = this.#listen;
    const entry = channels?.[member.channel];
    if (channels === void 0 || entry === void 0) return;
    entry.listeners = entry.listeners.filter(({ fn }) => fn !== member.onNotify);
    if (entry.listeners.length === 0) delete channels[member.channel];
  }
  #close() {
    this.#over = true;
    if (this.#listen.sql === this.#client) this.#listen.sql = void 0;
    delete this.#client.options.onclose;
    this.#client.end({ timeout: 0 }).catch(() => void 0);
  }
};
function closed() {
  return new Error("The connection that listens was closed");
}

// src/drivers/listen-postgres-js.ts
function listenByPostgresJs({ listen }) {
  return async (channel, events, signal) => {
    if (signal.aborted) return;
    const over = aborted(signal);
    const onNotify = (payload) => {
      if (!signal.aborted) events.notify(payload);
    };
    const onListen = () => {
      if (!signal.aborted) events.ready(shared);
    };
    const listening = listen(channel, onNotify, onListen);
    const shared = SharedConnection.of(listen);
    const membership = shared?.join(channel, onNotify);
    try {
      await Promise.race([listening, over]);
      await Promise.race([membership?.lost ?? over, over]);
    } finally {
      if (membership !== void 0) membership.leave();
      else listening.then((subscription) => subscription.unlisten()).catch(() => void 0);
    }
  };
}

// src/drivers/detect.ts
function listenOf(db) {
  const client = Reflect.get(Object(db), "$client");
  if (typeof client === "function") {
    return "listen" in client ? listenByPostgresJs(client) : void 0;
  }
  if (typeof client !== "object" || client === null) return void 0;
  if ("listen" in client) return listenByPGlite(client);
  return listenByNodePostgres(client);
}
function hasOneConnection(db) {
  const client = Reflect.get(Object(db), "$client");
  return typeof client === "object" && client !== null && "listen" in client;
}

// src/drivers/listen-or-poll.ts
var said = /* @__PURE__ */ new Set();
function listenOrPoll(db) {
  const listen = listenOf(db);
  if (listen === void 0) {
    say(
      `${driverOf(db)} cannot listen for notifications, so its workers poll, every pollIntervalMs; listen: false says that this is meant`
    );
    return void 0;
  }
  if (hasOneConnection(db)) return listen;
  return (channel, events, signal) => listen(
    channel,
    {
      ready: (connection) => {
        if (connection === void 0) sayNoSession(driverOf(db));
        events.ready(connection);
      },
      notify: (payload) => events.notify(payload)
    },
    signal
  );
}
function sayNoSession(driver) {
  say(
    `${driver} runs no statements on the connection that listens, so its workers hold no session lock: others know by the heartbeat alone that one has died, after silentMs (30 s) instead of a few seconds`
  );
}
function say(warning) {
  if (said.has(warning)) return;
  said.add(warning);
  process.emitWarning(warning, "DrizzleQueueWarning");
}
var ENTITY_KIND = Symbol.for("drizzle:entityKind");
function driverOf(db) {
  return String(Reflect.get(Object(db).constructor, ENTITY_KIND) ?? "This database");
}

// src/drivers/prepared.ts
import { PgDialect as PgDialect2 } from "drizzle-orm/pg-core";
var REFUSED = /^(26000|42P05|0A000)$/;
var dialect2 = new PgDialect2();
function preparing(db, onRefused) {
  const client = postgresJsClientOf(db);
  if (client === void 0) return db;
  let refused = false;
  return {
    async execute(query) {
      if (refused) return await db.execute(query);
      const { sql: sql55, params } = dialect2.sqlToQuery(query.getSQL());
      try {
        return await client.unsafe(sql55, params, { prepare: true });
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

// src/queries/write-progress.ts
import { sql as sql31 } from "drizzle-orm";

// src/sql/fence.ts
import { sql as sql30 } from "drizzle-orm";
function stillHeld({ queue, workerId }) {
  return sql30`j.queue = ${queue} and j.id = any(array(select id from i))
        and j.worker_id is not distinct from ${workerId}::int8 and ((j.id, j.fence) in (select id, fence from i)) is true`;
}
function idsAndFences(jobs) {
  const ids = jobs.map(({ id }) => id);
  const fences = jobs.map(({ fence }) => fence);
  return sql30`unnest(${arrayText(ids)}::text::int8[]), unnest(${arrayText(fences)}::text::int8[])`;
}
function arrayText(values) {
  return `{${values.join(",")}}`;
}

// src/queries/write-progress.ts
async function writeProgress(db, tables2, held, jobs) {
  const rows = await queryRows(db, tables2, writeProgressQuery(tables2, held, jobs));
  return new Set(rows.map((row) => Number(row.id)));
}
function writeProgressQuery({ queueJobs: queueJobs2 }, held, jobs) {
  const values = `[${jobs.map(({ progress }) => progress).join(",")}]`;
  return sql31`
    with i as materialized (
      select id, fence, progress
      from rows from (${idsAndFences(jobs)}, jsonb_array_elements(${values}::text::jsonb))
        as r(id, fence, progress)
    ),
    free as (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(held)}
      for no key update skip locked
    )
    update ${queueJobs2} as j set progress = i.progress
    from i
    where j.queue = ${held.queue} and j.id = any(array(select id from free))
      and i.id = j.id and i.fence = j.fence
    returning j.id`;
}

// src/worker/time/condition.ts
var Condition = class {
  #signalled = false;
  #waiting = /* @__PURE__ */ new Set();
  /** Ends all current waits, or else the next one. */
  signal() {
    if (this.#waiting.size === 0) this.#signalled = true;
    for (const end of [...this.#waiting]) end();
  }
  /** Forgets a signal that is about to be acted on. */
  clear() {
    this.#signalled = false;
  }
  /**
   * Waits for a signal, at most `ms` milliseconds (which may be `Infinity`) or until `over` is aborted.
   * Answers whether there was a signal.
   */
  async wait(ms = Number.POSITIVE_INFINITY, over) {
    if (over?.aborted) return false;
    if (this.#signalled) {
      this.#signalled = false;
      return true;
    }
    return await new Promise((resolve) => {
      const end = (signalled) => {
        clearTimeout(timer);
        over?.removeEventListener("abort", onOver);
        this.#waiting.delete(onSignal);
        resolve(signalled);
      };
      const onSignal = () => end(true);
      const onOver = () => end(false);
      const timer = setTimeout(() => end(false), Math.min(ms, MAX_TIMER_MS));
      over?.addEventListener("abort", onOver);
      this.#waiting.add(onSignal);
    });
  }
};

// src/worker/attempt/progress.ts
var MAX_PROGRESS_BYTES = 4096;
var INTERVAL_MS2 = 250;
var RETRY_MS = 5e3;
var Progress = class {
  #environment;
  #events;
  /** The JSON texts to write. */
  #values = /* @__PURE__ */ new Map();
  #reported = new Condition();
  constructor(environment, events) {
    this.#environment = environment;
    this.#events = events;
  }
  /** Takes a value, in place of an earlier one that is not written yet. Never throws. */
  report(attempt, value) {
    try {
      this.#values.set(attempt, progressToStore(value));
    } catch (error) {
      const { id, queue } = attempt.job;
      this.#events.emit("error", { error, during: `the progress of job ${id} of '${queue}'` });
      return;
    }
    this.#reported.signal();
  }
  async run(signal) {
    while (!signal.aborted) {
      if (this.#values.size === 0) await this.#reported.wait(Number.POSITIVE_INFINITY, signal);
      await new Promise(setImmediate);
      if (signal.aborted) return;
      this.#reported.clear();
      await sleep(await this.#write(), signal);
    }
  }
  /** Never rejects; answers how many milliseconds to wait before the next write. */
  async #write() {
    for (const attempt of this.#values.keys()) if (!attempt.open) this.#values.delete(attempt);
    const values = [...this.#values];
    const [first] = values;
    if (first === void 0) return 0;
    const { db, tables: tables2 } = this.#environment;
    const { held } = first[0];
    const jobs = values.map(([{ job }, progress]) => ({ id: job.id, fence: job.fence, progress }));
    const startMs = performance.now();
    try {
      const written = await writeProgress(db, tables2, held, jobs);
      for (const [attempt, progress] of values) {
        if (written.has(attempt.job.id) && this.#values.get(attempt) === progress)
          this.#values.delete(attempt);
      }
      return Math.max(0, startMs + INTERVAL_MS2 - performance.now());
    } catch (error) {
      this.#events.emit("error", { error, during: `writing the progress of jobs of '${held.queue}'` });
      return RETRY_MS;
    }
  }
};
function progressToStore(value) {
  const json = toStoredJson(value === void 0 ? null : value);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > MAX_PROGRESS_BYTES) {
    throw new QueueError(
      `job.progress takes a value of at most ${MAX_PROGRESS_BYTES} bytes of JSON, got ${bytes}`
    );
  }
  return json;
}

// src/queries/claim-jobs.ts
import { sql as sql33 } from "drizzle-orm";

// src/sql/plan-anew.ts
import { sql as sql32 } from "drizzle-orm";
function planAnew() {
  const one = sql32`generate_series(1, ${1}::int4)`;
  return sql32`${one} as a cross join ${one} as b cross join ${one} as c`;
}

// src/queries/claim-jobs.ts
var MAX_CLAIM_BYTES = 8 * 1024 * 1024;
async function claimJobs(db, tables2, claim) {
  const rows = await queryRows(db, tables2, claimJobsQuery(tables2, claim));
  await faultPoint("claim: answered");
  const own = ownColumnsOf(tables2.queueJobs);
  return rows.sort(inClaimOrder).map((row) => {
    const job = toClaimedJob(row, claim.queue);
    return own.length === 0 ? job : Object.assign(job, ownRecord(own, row));
  });
}
function sawTheEnd(limit, jobs) {
  if (jobs.length >= limit) return false;
  return jobs.reduce((bytes, { payloadBytes }) => bytes + payloadBytes, 0) < MAX_CLAIM_BYTES;
}
function claimJobsQuery(tables2, claim) {
  const { queueJobs: queueJobs2, queueWorkers: queueWorkers2, queuePauses: queuePauses2 } = tables2;
  const held = claim.fromGoneWorkers ? (
    // Never its own: a worker that was declared gone by mistake still runs what it holds.
    sql33`(j.worker_id is null or (j.worker_id is distinct from ${claim.workerId}::int8
            and j.worker_id not in (select w.id from ${queueWorkers2} as w)))`
  ) : sql33`j.worker_id is null`;
  const unlessPaused = claim.heedPauses ? sql33`
          and not exists (select from ${queuePauses2} as p where p.queue = ${claim.queue})` : sql33``;
  const ctes = sql33`
    with due as (
      select j.id, j.bytes
      from ${planAnew()} cross join jsonb_to_recordset(${JSON.stringify(claim.bands.map(toBandRow))}::text::jsonb)
        as band(priority int2, floor timestamptz)
      cross join lateral (
        select j.id, pg_column_size(j.payload) as bytes from ${queueJobs2} as j
        where j.queue = ${claim.queue} and j.priority = band.priority and j.priority >= 0
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()
          and ${held}${unlessPaused}
          and j.kind = any(array(select jsonb_array_elements_text(${JSON.stringify(claim.kinds)}::text::jsonb)))
        order by j.run_at, j.id limit (select ${claim.limit}::int8)
        for no key update skip locked
      ) as j
      limit ${claim.limit}
    ),
    within as (
      select id from (select id, sum(bytes) over (rows between unbounded preceding and 1 preceding) as before from due) as d
      where before is null or before < ${MAX_CLAIM_BYTES}::int8
    )`;
  return endHolds(tables2, {
    ctes,
    // The hold that it may end is that of a worker that is gone.
    change: {
      holder: sql33`${claim.workerId}::int8`,
      claimedAt: sql33`statement_timestamp()`,
      set: sql33`attempt = j.attempt + 1, fence = j.fence + 1`
    },
    where: sql33`j.queue = ${claim.queue} and j.id = any(array(select id from within))`,
    returning: sql33`j.id, j.kind, j.payload, pg_column_size(j.payload) as payload_bytes, j.priority,
      j.attempt, j.max_attempts, j.fence, j.unique_key, nullif(j.errors, '[]') as errors, nullif(j.metadata, '{}') as metadata, ${epochMs("j.run_at")} as run_at,
      ${epochMs("j.created_at")} as created_at, ${epochMs("j.claimed_at")} as claimed_at, j.cancel_reason${selectOwn(ownColumnsOf(queueJobs2), "j")}`
  });
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
    claimedAt: dateOf(row.claimed_at),
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason)
  };
}
function inClaimOrder(a, b) {
  return Number(a.priority) - Number(b.priority) || Number(a.run_at) - Number(b.run_at) || Number(a.id) - Number(b.id);
}

// src/queries/find-held-jobs.ts
import { sql as sql34 } from "drizzle-orm";
async function findHeldJobs(db, tables2, held, jobs) {
  const rows = await queryRows(db, tables2, findHeldJobsQuery(tables2, held, jobs));
  return new Map(rows.map((row) => [Number(row.id), Number(row.fence)]));
}
function findHeldJobsQuery({ queueJobs: queueJobs2 }, held, jobs) {
  return sql34`
    with i as materialized (select id, fence from rows from (${idsAndFences(jobs)}) as r(id, fence))
    select j.id, j.fence from ${queueJobs2} as j where ${stillHeld(held)}`;
}

// src/queries/release-jobs.ts
import { sql as sql35 } from "drizzle-orm";
async function releaseJobs(db, tables2, release) {
  const rows = await queryRows(db, tables2, releaseJobsQuery(tables2, release));
  return rows.length;
}
function releaseJobsQuery(tables2, release) {
  return endHolds(tables2, {
    change: { set: sql35`attempt = j.attempt - 1` },
    where: sql35`j.queue = ${release.queue} and j.worker_id = ${release.workerId}
      and not exists (
        select from rows from (${idsAndFences(release.except)}) as i(id, fence) where i.id = j.id and i.fence = j.fence)`,
    returning: sql35`j.id`
  });
}

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
        error: { attempt, name: "Cancelled", message: storable2(outcome.reason) },
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

// src/queries/finish-jobs.ts
import { sql as sql37 } from "drizzle-orm";

// src/sql/row-locks.ts
import { sql as sql36 } from "drizzle-orm";
var BRIEFLY = "100ms";
function lockPatience(locks) {
  return locks === "wait" ? sql36`` : sql36` cross join set_config('lock_timeout', ${BRIEFLY}::text, true) as patience`;
}

// src/queries/finish-jobs.ts
async function finishJobs(db, tables2, held, finishes, options) {
  const rows = await queryRows(db, tables2, finishJobsQuery(tables2, held, finishes, options));
  return finishedBut(finishes, rows.map(toKey));
}
async function finishFreeJobs(db, tables2, held, finishes) {
  const rows = await queryRows(db, tables2, finishJobsQuery(tables2, held, finishes, { locks: "skip" }));
  const locked = rows.filter((row) => row.locked === true).map(({ id }) => Number(id));
  return { finished: finishedBut(finishes, rows.map(toKey)), locked: new Set(locked) };
}
function finishedBut(finishes, notFinished) {
  const keys = new Set(notFinished);
  return new Set(finishes.filter((one) => keys.size === 0 || !keys.has(toKey(one))).map(({ id }) => id));
}
function toKey({ id, fence }) {
  return `${id}/${fence}`;
}
function finishJobsQuery(tables2, held, finishes, { onlyInTransaction = false, locks = "wait" } = {}) {
  const { queueJobs: queueJobs2, queueResults: queueResults2 } = tables2;
  const inTransaction = onlyInTransaction ? sql37` and pg_current_xact_id_if_assigned() is not null` : sql37``;
  const own = ownColumnsOf(queueJobs2);
  const from = sql37`${planAnew()}${lockPatience(locks)}`;
  const skip = locks === "skip";
  const free = skip ? sql37`,
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(held)}
      for update skip locked
    )` : sql37``;
  const where = skip ? sql37`j.queue = ${held.queue} and j.id = any(array(select id from free))` : sql37`${stillHeld(held)}${inTransaction}`;
  const locked = skip ? sql37`, (id, fence) in (select j.id, j.fence from ${queueJobs2} as j where ${stillHeld(held)}) as locked` : sql37``;
  const rest = sql37`
    select id, fence${locked} from i where (id, fence) not in (select id, fence from finished)`;
  if (!finishes.some(({ transition }) => transition.keepResult)) {
    return endHolds(tables2, {
      ctes: sql37`
    with i as materialized (
      select id, fence from ${from} cross join rows from (${idsAndFences(finishes)}) as r(id, fence)
    )${free}`,
      change: "delete",
      where,
      returning: sql37`j.id, j.fence`,
      answer: { name: "finished", select: rest }
    });
  }
  return endHolds(tables2, {
    ctes: sql37`
    with i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep, nullif(output, 'null') as output,
        ${withTime(sql37`nullif(error, 'null')`)} as error
      from ${from} cross join rows from (${idsAndFences(finishes)}, ${endings(finishes)}) as r(id, fence, state, keep, output, error)
    )${free}`,
    change: "delete",
    where,
    returning: sql37`j.*`,
    answer: {
      name: "finished",
      select: sql37`,
    recorded as (
      insert into ${queueResults2} (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority, fence,
        unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at${ownNames(own)})
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, ${withError(sql37`f.errors`, sql37`i.error`)}, f.attempt, f.max_attempts, f.priority, f.fence,
        f.unique_key, f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at, statement_timestamp()${ownNames(own, "f.")}
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )${rest}`
    }
  });
}
function endings(finishes) {
  const transitions = finishes.map(({ transition }) => transition);
  const states = transitions.every(({ state }) => state === "completed") ? [] : transitions.map(({ state }) => state);
  const keeps = transitions.every(({ keepResult }) => keepResult) ? [] : transitions.map(({ keepResult }) => keepResult);
  const outputs = transitions.every(({ output }) => output === null || output === "null") ? [] : transitions.map(({ output }) => output ?? "null");
  const errors = transitions.every(({ error }) => error === null) ? [] : transitions.map(({ error }) => JSON.stringify(error));
  return sql37`unnest(${arrayText(states)}::text::text[]), unnest(${arrayText(keeps)}::text::bool[]),
        jsonb_array_elements(${`[${outputs.join(",")}]`}::text::jsonb), jsonb_array_elements(${`[${errors.join(",")}]`}::text::jsonb)`;
}

// src/queries/transaction-id.ts
import { sql as sql38 } from "drizzle-orm";
async function transactionId(tx, tables2) {
  const [row] = await queryRows(tx, tables2, transactionIdQuery);
  return String(row?.id);
}
var transactionIdQuery = sql38`select pg_current_xact_id()::text as id`;

// src/queries/complete-job.ts
async function completeJob(tx, tables2, held, job) {
  const ended = async () => {
    const ids = await finishJobs(tx, tables2, held, [job], { onlyInTransaction: true });
    return ids.has(job.id);
  };
  if (await ended()) return "completed";
  const id = await transactionId(tx, tables2);
  if (await ended()) return "completed";
  return id === await transactionId(tx, tables2) ? "lost" : "outside";
}

// src/worker/attempt/attempt.ts
var INTERRUPT_GRACE_MS = 1e3;
var Attempt = class {
  constructor(job, handler, environment) {
    this.job = job;
    this.handler = handler;
    this.environment = environment;
    this.#cancelReason = job.cancelReason ?? void 0;
  }
  #controller;
  /** Why it was told to end. */
  #reason;
  /** Rejects `run`, while that waits for the handler. */
  #reject;
  #ended = false;
  #interrupted = false;
  #cancelReason;
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
  /** Why somebody has asked for the job's end, if that is known. */
  get cancelReason() {
    return this.#cancelReason;
  }
  /** Whether a handler runs that may still write about its job. */
  get open() {
    return !this.#over && !this.#completeRan;
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
  /** Tells the handler that somebody asks for the job's end, and goes on waiting for it. */
  cancel(reason) {
    if (this.#over || this.#cancelReason !== void 0) return;
    this.#cancelReason = reason;
    this.#abort(new JobCancelledError(this.job.kind, this.job.id, reason));
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
  /** Passes on how far the handler is, as long as that is of interest. */
  report(value) {
    if (this.open) this.environment.onProgress?.(this, value);
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
    await faultPoint("complete: checked");
    const transition = transitionFor({ type: "completed", output: json }, this.facts);
    if (transition.type !== "finish") throw new TypeError("A completed attempt finishes its job");
    this.#completeRan = true;
    const finish = { id: job.id, fence: job.fence, transition };
    const completion = await completeJob(tx, environment.tables, this.held, finish);
    if (completion === "completed") return;
    this.#completeRan = false;
    if (completion === "lost") throw new LeaseLostError(job.kind, job.id);
    throw new QueueError(
      `Job ${job.id} ('${job.kind}') is not completed: complete(tx) did not run inside a transaction, whose connection was lost or which is over`
    );
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
    const job = attempt.job;
    job.progress = (value) => attempt.report(value);
    this.job = job;
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

// src/queries/find-fates.ts
import { sql as sql39 } from "drizzle-orm";
async function findFates(db, tables2, queue, jobs) {
  const rows = await queryRows(db, tables2, findFatesQuery(tables2, queue, jobs));
  return new Map(rows.map((row) => [Number(row.id), toFate(row)]));
}
function findFatesQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, queue, jobs) {
  return sql39`
    select i.id, coalesce(j.fence, r.fence) as fence, coalesce(j.attempt, r.attempt) as attempt, r.state,
      coalesce(j.worker_id, r.worker_id) is not null as held, j.cancel_reason, coalesce(j.errors, r.errors) as errors
    from rows from (${idsAndFences(jobs)}) as i(id, fence)
    left join lateral (
      select j.fence, j.attempt, j.worker_id, j.cancel_reason, j.errors from ${queueJobs2} as j
      where j.queue = ${queue} and j.id = i.id limit 1
    ) as j on true
    left join lateral (
      select r.fence, r.attempt, r.worker_id, r.state, r.errors from ${queueResults2} as r
      where j.fence is null and r.queue = ${queue} and r.job_id = i.id limit 1
    ) as r on true
    where j.fence is not null or r.fence is not null`;
}
function toFate(row) {
  return {
    fence: Number(row.fence),
    attempt: Number(row.attempt),
    // The column has a CHECK, and the errors are written by us alone.
    state: row.state ?? null,
    held: row.held === true,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
    errors: row.errors
  };
}

// src/worker/attempt/announce.ts
function announce(events, attempt, outcome, written) {
  const { job } = attempt;
  const { transition, settled, completedByHandler, durationMs } = written;
  if (settled === "lost") {
    if (completedByHandler) events.emit("completed", { job, durationMs });
    else events.emit("lost", { job });
    return;
  }
  if (typeof settled === "object") {
    if (outcome.type === "failed") events.emit("failed", { job, error: outcome.error, retryInMs: void 0 });
    events.emit("cancelled", { job, reason: settled.cancelled });
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

// src/worker/attempt/execute-job.ts
async function executeJob(attempt) {
  const unwanted = cancelledBy(attempt);
  if (unwanted !== void 0) return unwanted;
  const { job, handler } = attempt;
  if (job.attempt > job.maxAttempts) {
    return { type: "failed", error: new WorkerLostError(job.kind, job.id, job.maxAttempts) };
  }
  const { timeoutMs } = handler.job;
  const timer = timeoutMs === void 0 ? void 0 : setTimeout(() => attempt.end(new JobTimeoutError(job.kind, job.id, timeoutMs)), timeoutMs);
  try {
    const payload = handler.job.payload === void 0 ? void 0 : await payloadFromStore(handler.job, job.payload);
    const returned = await attempt.run(payload);
    const outcome = outcomeWithoutOutput(attempt, returned) ?? await completed(handler.job, returned);
    return (outcome.type === "snoozed" ? cancelledBy(attempt) : void 0) ?? outcome;
  } catch (error) {
    const cancelled = cancelledBy(attempt);
    if (cancelled !== void 0) return cancelled;
    if (attempt.interrupted) return { type: "interrupted" };
    return { type: "failed", error: attempt.reason ?? error };
  } finally {
    if (timer !== void 0) clearTimeout(timer);
    attempt.close();
  }
}
function cancelledBy({ cancelReason }) {
  return cancelReason === void 0 ? void 0 : { type: "cancelled", reason: cancelReason };
}
function outcomeWithoutOutput(attempt, returned) {
  if (isSnooze(returned)) return { type: "snoozed", delayMs: returned.delayMs };
  if (isCancel(returned)) return { type: "cancelled", reason: returned.reason };
  const nothing = returned === void 0 && attempt.handler.job.output === void 0;
  if (attempt.completeRan || nothing) return { type: "completed", output: "null" };
  return void 0;
}
async function completed(job, returned) {
  return { type: "completed", output: await outputToStore(job, returned) };
}
function outcomeIfStillHeld(attempt, outcome) {
  if (!attempt.completeRan || outcome.type !== "completed") return outcome;
  const cancelled = cancelledBy(attempt);
  if (cancelled !== void 0) return cancelled;
  const error = new QueueError("The transaction in which the handler called complete(tx) did not commit");
  return { type: "failed", error };
}

// src/worker/attempt/conclude.ts
var FIRST_AGAIN_MS = 1e3;
var MAX_AGAIN_MS = 6e4;
async function conclude(options, attempt, outcome, durationMs) {
  await untilAccepted(options, attempt, async (alone) => {
    try {
      await writeAndAnnounce(options, attempt, outcome, durationMs, alone);
    } catch (refusal) {
      const failed = { type: "failed", error: withoutQuery(refusal) };
      await writeAndAnnounce(options, attempt, failed, durationMs, true);
    }
  });
}
async function giveBack(options, attempt) {
  const { job } = attempt;
  const transition = transitionFor({ type: "interrupted" }, attempt.facts);
  await untilAccepted(options, attempt, async (alone) => {
    const settled = await write(options, attempt, transition, alone);
    if (settled === "abandoned") options.onUnwritten(attempt);
    if (typeof settled === "object") options.events.emit("cancelled", { job, reason: settled.cancelled });
  });
}
async function untilAccepted({ events, leave, onUnwritten }, attempt, tryOnce) {
  const { job } = attempt;
  for (let delayMs = FIRST_AGAIN_MS, alone = false; ; delayMs = Math.min(delayMs * 2, MAX_AGAIN_MS)) {
    try {
      await tryOnce(alone);
      return;
    } catch (error) {
      events.emit("error", { error, during: `settling job ${job.id} of '${job.queue}'` });
    }
    if (leave.aborted) {
      onUnwritten(attempt);
      return;
    }
    alone = true;
    await sleep(delayMs, leave);
  }
}
async function writeAndAnnounce(options, attempt, outcome, durationMs, alone) {
  const outcomeToWrite = outcomeIfStillHeld(attempt, outcome);
  const transition = transitionFor(outcomeToWrite, attempt.facts);
  const settled = await write(options, attempt, transition, alone);
  if (settled === "abandoned") {
    options.onUnwritten(attempt);
    return;
  }
  const completedByHandler = settled === "lost" && await handlerHasEnded(options, attempt, outcome);
  announce(options.events, attempt, outcomeToWrite, { transition, settled, completedByHandler, durationMs });
}
async function handlerHasEnded({ events }, { completeRan, environment, job }, outcome) {
  if (!completeRan) return false;
  if (outcome.type === "completed") return true;
  try {
    const fate = (await findFates(environment.db, environment.tables, job.queue, [job])).get(job.id);
    return fate === void 0 || fate.state !== null && fate.fence === job.fence;
  } catch (error) {
    events.emit("error", { error, during: `asking what became of job ${job.id} of '${job.queue}'` });
    return false;
  }
}
function write({ settler }, { job, completeRan }, transition, alone) {
  const settlement = { id: job.id, fence: job.fence, transition };
  return completeRan || alone ? settler.settleAlone(settlement) : settler.settle(settlement);
}

// src/worker/attempt/may-wait.ts
function mayWait({ attempt, maxAttempts, errors }) {
  const lastRecorded = errors.at(-1)?.attempt ?? 0;
  return attempt < maxAttempts && lastRecorded >= attempt - 1;
}

// src/worker/attempt/prefetch.ts
var HORIZON_MS = 50;
var MAX_PREFETCH = 4e3;
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

// src/queries/reschedule-jobs.ts
import { sql as sql40 } from "drizzle-orm";
async function rescheduleJobs(db, tables2, held, reschedules, options) {
  const rows = await queryRows(db, tables2, rescheduleJobsQuery(tables2, held, reschedules, options));
  return new Map(rows.map(toRescheduled));
}
async function rescheduleFreeJobs(db, tables2, held, reschedules) {
  const rows = await queryRows(db, tables2, rescheduleJobsQuery(tables2, held, reschedules, { locks: "skip" }));
  return {
    rescheduled: new Map(rows.filter((row) => row.locked !== true).map(toRescheduled)),
    locked: new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id)))
  };
}
function toRescheduled(row) {
  return [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)];
}
function rescheduleJobsQuery(tables2, held, reschedules, { locks = "wait" } = {}) {
  const { queueJobs: queueJobs2 } = tables2;
  const transitions = reschedules.map(({ transition }) => transition);
  const ctes = sql40`
    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        ${withTime(sql40`nullif(error, 'null')`)} as error
      from ${planAnew()}${lockPatience(locks)} cross join rows from (${idsAndFences(reschedules)}, unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? "null"))}::text::float8[]),
        jsonb_array_elements(${JSON.stringify(transitions.map(({ error }) => error))}::text::jsonb)) as r(id, fence, attempt, delay_ms, error)
    )`;
  const change = {
    set: sql40`attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      errors = ${withError(sql40`j.errors`, sql40`i.error`)}`,
    from: sql40`i`
  };
  const returning = sql40`j.id, j.cancel_reason`;
  if (locks !== "skip") {
    return endHolds(tables2, {
      ctes,
      change,
      where: sql40`i.id = j.id and i.fence = j.fence and ${stillHeld(held)}`,
      returning
    });
  }
  return endHolds(tables2, {
    ctes: sql40`${ctes},
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(held)}
      for no key update skip locked
    )`,
    change,
    where: sql40`j.queue = ${held.queue} and j.id = any(array(select id from free)) and i.id = j.id and i.fence = j.fence`,
    returning,
    answer: {
      name: "rescheduled",
      select: sql40`
    select id, cancel_reason, false as locked from rescheduled
    union all
    select j.id, null, true from ${queueJobs2} as j
    where ${stillHeld(held)} and j.id not in (select id from rescheduled)`
    }
  });
}

// src/worker/attempt/unwritten.ts
var Unwritten = class {
  #jobs = /* @__PURE__ */ new Map();
  add(attempt) {
    const transition = transitionFor({ type: "interrupted" }, attempt.facts);
    if (transition.type !== "reschedule")
      throw new TypeError("An interrupted attempt goes back to its place");
    const { id, fence } = attempt.job;
    this.#jobs.set(attempt, { id, fence, transition });
  }
  /**
   * Puts their jobs back as they were before the claim, in one statement; without such jobs it sends none.
   * By id and fence: a job that somebody else has claimed meanwhile stays theirs, and a repetition does
   * nothing.
   */
  async giveBack(db, tables2, held) {
    if (this.#jobs.size > 0) await rescheduleJobs(db, tables2, held, [...this.#jobs.values()]);
  }
};

// src/worker/attempt/attempts.ts
var MAX_UNSETTLED = 4e3;
var MAX_PER_TURN = 100;
var MAX_WAIT_MS = 500;
var Attempts = class {
  #options;
  #conclude;
  #leaving = new AbortController();
  #prefetch = new Prefetch();
  /** Claimed ahead, not begun. */
  #waiting = [];
  unwritten = new Unwritten();
  /** The handler runs. Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  #running = /* @__PURE__ */ new Set();
  /** The outcome is not written yet. */
  #unsettled = /* @__PURE__ */ new Set();
  #begunInTurn = 0;
  #stopped = false;
  #paused = false;
  #patience;
  #lastBeganMs = 0;
  constructor(options) {
    this.#options = options;
    const leave = this.#leaving.signal;
    this.#conclude = { ...options, leave, onUnwritten: (attempt) => this.unwritten.add(attempt) };
    if (!options.persistent) this.#leaving.abort();
  }
  /** How many jobs are held, in whatever stage. */
  get size() {
    return this.#waiting.length + this.#running.size + this.#unsettled.size;
  }
  /** All jobs that are held, with the fences under which they are. */
  get jobs() {
    return [...this.#waiting, ...this.#running, ...this.#unsettled].map(({ job }) => job);
  }
  /** How many jobs to claim now; 0 when there is enough to do. */
  get demand() {
    const { concurrency } = this.#options;
    if (this.#paused) return 0;
    if (this.#unsettled.size >= MAX_UNSETTLED) return 0;
    const ahead = this.#prefetch.size(concurrency);
    if (this.#waiting.length > ahead / 2) return 0;
    return concurrency + ahead - this.#running.size - this.#waiting.length;
  }
  /** Takes claimed jobs in, in their order. */
  add(jobs) {
    const { handlers, environment } = this.#options;
    this.#prefetch.noteClaimed(jobs.map(({ payloadBytes }) => payloadBytes));
    for (const job of jobs) {
      const handler = handlers.get(job.kind);
      if (handler === void 0)
        throw new TypeError(`Claimed a job of the kind '${job.kind}', which has no handler`);
      this.#waiting.push(new Attempt(job, handler, environment));
    }
    if (this.#stopped || this.#paused) {
      this.#giveBack(() => true);
      return;
    }
    this.#beginWaiting();
    if (this.#giveBack(({ job }) => !mayWait(job)) > 0) this.#prefetch.distrust();
  }
  /** Begins nothing more, and gives back what waits. What runs goes on. */
  stop() {
    this.#stopped = true;
    this.#leaving.abort();
    clearTimeout(this.#patience);
    this.#giveBack(() => true);
  }
  /** Begins nothing more until `resume`, and gives back what waits. What runs goes on. */
  pause() {
    this.#paused = true;
    this.#giveBack(() => true);
    this.#options.onChange();
  }
  resume() {
    this.#paused = false;
    this.#options.onChange();
  }
  get paused() {
    return this.#paused;
  }
  /** What runs. */
  get running() {
    return [...this.#running];
  }
  /** Tells every running handler that the worker stops. */
  interrupt(reason) {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }
  /** What waits or runs. */
  get unfinished() {
    return [...this.#waiting, ...this.#running];
  }
  /**
   * Ends those of the attempts whose jobs are no longer held.
   *
   * @param asked the attempts that were asked about, and no others: the answer says nothing of a job claimed since
   * @param held the fences of the jobs that are still held, by id
   */
  endLost(asked, held) {
    const lost = new Set(asked.filter(({ job }) => held.get(job.id) !== job.fence));
    if (lost.size === 0) return;
    this.#waiting = this.#waiting.filter((attempt) => !lost.has(attempt));
    for (const attempt of lost) {
      if (!this.#running.has(attempt) || !attempt.open) continue;
      attempt.end(new LeaseLostError(attempt.job.kind, attempt.job.id));
    }
    this.#announceChange();
  }
  #beginWaiting() {
    let began = false;
    while (this.#running.size < this.#options.concurrency && this.#begunInTurn < MAX_PER_TURN) {
      const attempt = this.#waiting.shift();
      if (attempt === void 0) break;
      began = true;
      this.#countInTurn();
      this.#running.add(attempt);
      void this.#execute(attempt);
    }
    if (began) this.#lastBeganMs = performance.now();
    if (this.#waiting.length > 0) this.#patience ??= setTimeout(() => this.#losePatience(), MAX_WAIT_MS);
  }
  /**
   * Handlers that wait for nothing would all run one after the other before anything else does, and the next claim and the
   * settlements, though asked for, would reach the socket only when the last has ended: database and process would take turns.
   */
  #countInTurn() {
    this.#begunInTurn++;
    if (this.#begunInTurn < MAX_PER_TURN) return;
    setImmediate(() => {
      this.#begunInTurn = 0;
      this.#beginWaiting();
    });
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
      void giveBack(this.#conclude, attempt).then(() => this.#forget(attempt));
    }
    return back.length;
  }
  async #execute(attempt) {
    const startMs = performance.now();
    const outcome = await executeJob(attempt);
    const durationMs = performance.now() - startMs;
    this.#running.delete(attempt);
    this.#unsettled.add(attempt);
    this.#prefetch.note(durationMs);
    this.#beginWaiting();
    this.#announceChange();
    await conclude(this.#conclude, attempt, outcome, durationMs);
    this.#forget(attempt);
  }
  #forget(attempt) {
    this.#unsettled.delete(attempt);
    this.#announceChange();
  }
  /** Only when there is something to do about it: a claim to make, or an end to notice. */
  #announceChange() {
    if (this.size === 0 || this.demand > 0) this.#options.onChange();
  }
};

// src/worker/attempt/refusal.ts
var CANCELLED_STATEMENT = "57014";
var LOCK_NOT_AVAILABLE = "55P03";
var ABOUT_THE_SERVER = /^(08|25|28|3D|40|53|57|58)/;
function isAboutTheServer(error) {
  const sqlState = sqlStateOf(error);
  if (sqlState === void 0) return true;
  return ABOUT_THE_SERVER.test(sqlState) && sqlState !== CANCELLED_STATEMENT;
}
function isAboutLocks(error) {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}

// src/worker/attempt/settlement.ts
var PendingSettlement = class {
  constructor(id, fence, transition, onAnswer) {
    this.id = id;
    this.fence = fence;
    this.transition = transition;
    this.onAnswer = onAnswer;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }
  result;
  /** Whether a try may have taken effect whose answer was lost. */
  uncertain = false;
  #answered = false;
  #resolve = () => void 0;
  #reject = () => void 0;
  get answered() {
    return this.#answered;
  }
  answer(result) {
    if (this.#answer()) this.#resolve(result);
  }
  /** @param refusal what the database says about this row */
  refuse(refusal) {
    if (this.#answer()) this.#reject(refusal);
  }
  #answer() {
    if (this.#answered) return false;
    this.#answered = true;
    this.onAnswer(this);
    return true;
  }
};
function isFinish(settlement) {
  return settlement.transition.type === "finish";
}
function isReschedule(settlement) {
  return settlement.transition.type === "reschedule";
}
function isPark(settlement) {
  return settlement.transition.type === "park";
}

// src/queries/park-jobs.ts
import { sql as sql41 } from "drizzle-orm";
async function parkJobs(db, tables2, held, parks) {
  const rows = await queryRows(db, tables2, parkJobsQuery(tables2, held, parks));
  const putBack = rows.filter((row) => row.locked !== true);
  return {
    parked: new Map(
      putBack.map((row) => [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)])
    ),
    locked: new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id)))
  };
}
function parkJobsQuery(tables2, held, parks) {
  const transitions = parks.map(({ transition }) => transition);
  const { queueJobs: queueJobs2 } = tables2;
  return endHolds(tables2, {
    ctes: sql41`
    with i as materialized (
      select id, fence, attempt, coalesce(statement_timestamp() + delay_ms * interval '1 millisecond', 'infinity') as run_at
      from ${planAnew()}${lockPatience("skip")} cross join rows from (${idsAndFences(parks)},
        unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? "null"))}::text::float8[])) as r(id, fence, attempt, delay_ms)
    ),
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(held)}
      for no key update skip locked
    )`,
    change: {
      set: sql41`attempt = i.attempt,
      run_at = case when j.run_at > j.claimed_at or j.cancel_reason is not null then j.run_at else i.run_at end`,
      from: sql41`i`
    },
    where: sql41`j.queue = ${held.queue} and j.id = any(array(select id from free)) and i.id = j.id and i.fence = j.fence`,
    returning: sql41`j.id, j.cancel_reason`,
    answer: {
      name: "parked",
      select: sql41`
    select id, cancel_reason, false as locked from parked
    union all
    select j.id, null, true from ${queueJobs2} as j
    where ${stillHeld(held)} and j.id not in (select id from parked)`
    }
  });
}

// src/worker/attempt/what-became.ts
function whatBecame(settlement, fate) {
  const { fence, transition } = settlement;
  if (fate === void 0) return transition.type === "finish" ? "written" : "lost";
  const { error } = transition;
  const recorded = error !== null && fate.errors.some(({ attempt, message }) => attempt === error.attempt && message === error.message);
  if (transition.type === "finish") {
    const ended = fate.state === null ? recorded : fate.fence === fence && fate.state === transition.state;
    return ended ? "written" : "lost";
  }
  if (fate.fence === fence) {
    if (fate.held) return "lost";
    if (fate.state !== "cancelled") return "written";
    return { cancelled: fate.errors.at(-1)?.message ?? "" };
  }
  if (error !== null) return recorded ? "written" : "lost";
  const claimedOnce = fate.fence === fence + 1 && (fate.held || fate.state !== null);
  return claimedOnce && fate.attempt === transition.attempt + 1 ? "written" : "lost";
}

// src/worker/attempt/write-settlements.ts
var NOTHING = { written: /* @__PURE__ */ new Map(), locked: /* @__PURE__ */ new Set() };
async function writeSettlements(options, batch, locks) {
  const { db, tables: tables2, held } = options;
  const open = batch.filter(({ answered }) => !answered);
  const finishes = open.filter(isFinish);
  let finished = NOTHING;
  if (finishes.length > 0 && locks === "skip") {
    const { finished: ids, locked: locked2 } = await finishFreeJobs(db, tables2, held, finishes);
    finished = { written: withoutCancel(ids), locked: locked2 };
  } else if (finishes.length > 0) {
    finished = {
      ...NOTHING,
      written: withoutCancel(await finishJobs(db, tables2, held, finishes, { locks }))
    };
  }
  if (finishes.length > 0) await faultPoint("settle: finished");
  const locked = await answer(options, finishes, finished);
  const reschedules = open.filter(isReschedule);
  let rescheduled = NOTHING;
  if (reschedules.length > 0 && locks === "skip") {
    const free = await rescheduleFreeJobs(db, tables2, held, reschedules);
    rescheduled = { written: free.rescheduled, locked: free.locked };
  } else if (reschedules.length > 0) {
    rescheduled = { ...NOTHING, written: await rescheduleJobs(db, tables2, held, reschedules, { locks }) };
  }
  if (reschedules.length > 0) await faultPoint("settle: written");
  locked.push(...await answer(options, reschedules, rescheduled));
  const parks = open.filter(isPark);
  if (parks.length > 0) {
    const parked = await parkJobs(db, tables2, held, parks);
    await faultPoint("settle: parked");
    locked.push(...await answer(options, parks, { written: parked.parked, locked: parked.locked }));
  }
  return locked;
}
function withoutCancel(ids) {
  return new Map([...ids].map((id) => [id, null]));
}
async function answer(options, sent, { written, locked }) {
  const unmatched = sent.filter(({ id }) => !written.has(id) && !locked.has(id));
  const fates = await fatesOf(options, unmatched);
  for (const settlement of sent) {
    const cancelReason = written.get(settlement.id);
    if (cancelReason === null) settlement.answer("written");
    else if (cancelReason !== void 0)
      settlement.answer(await endUnwanted(options, settlement, cancelReason));
  }
  for (const settlement of unmatched) {
    if (!settlement.uncertain) {
      settlement.answer("lost");
      continue;
    }
    const fate = fates.get(settlement.id);
    const became = whatBecame(settlement, fate);
    const unwanted = became === "written" && fate?.state === null && fate.fence === settlement.fence;
    const cancelReason = unwanted ? fate.cancelReason : null;
    settlement.answer(cancelReason === null ? became : await endUnwanted(options, settlement, cancelReason));
  }
  return sent.filter(({ id, answered }) => locked.has(id) && !answered);
}
async function fatesOf({ db, tables: tables2, held }, unmatched) {
  const uncertain = unmatched.filter((settlement) => settlement.uncertain);
  return uncertain.length === 0 ? /* @__PURE__ */ new Map() : await findFates(db, tables2, held.queue, uncertain);
}
async function endUnwanted({ db, tables: tables2, held, events }, { id, transition }, message) {
  const attempt = transition.type === "finish" ? 0 : transition.attempt;
  const reason = { attempt, name: "Cancelled", message };
  try {
    const ended = await cancelJob(db, tables2, { id, queue: held.queue, reason });
    return ended ? { cancelled: message } : "written";
  } catch (error) {
    events.emit("error", { error, during: `cancelling job ${id} of '${held.queue}'` });
    return "written";
  }
}

// src/worker/attempt/settle.ts
var MAX_BATCH = 2e3;
var MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;
var FIRST_RETRY_MS = 100;
var MAX_RETRY_MS = 5e3;
var FIRST_LOCKED_MS = 25;
var MAX_LOCKED_MS = 500;
var Settler = class {
  #options;
  /** What has no answer yet. */
  #open = /* @__PURE__ */ new Set();
  #waiting = [];
  #locked = [];
  #refused = [];
  /** What runs: the batches, and what goes on beside them. */
  #underWay = /* @__PURE__ */ new Set();
  #writing = false;
  #unlocking = false;
  #halving = false;
  constructor(options) {
    this.#options = options;
    options.giveUp.addEventListener("abort", () => this.#abandon(), { once: true });
  }
  /**
   * Writes one transition, in a batch with others. Answers what became of it.
   *
   * @throws what the database says about this row
   */
  settle(settlement) {
    const pending = this.#take(settlement);
    if (pending.answered) return pending.result;
    this.#waiting.push(pending);
    if (!this.#writing) {
      this.#writing = true;
      this.#run(this.#writeAll());
    }
    return pending.result;
  }
  /**
   * The same in a statement of its own: for a job whose row the handler's own transaction may have locked, or that was
   * refused before.
   */
  settleAlone(settlement) {
    const pending = this.#take(settlement);
    if (!pending.answered) this.#run(this.#writeBeside([pending]));
    return pending.result;
  }
  /** Resolves when everything has its answer and no statement is under way. */
  async idle() {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
  #take({ id, fence, transition }) {
    const pending = new PendingSettlement(id, fence, transition, (answered) => this.#open.delete(answered));
    if (this.#options.giveUp.aborted) pending.answer("abandoned");
    else this.#open.add(pending);
    return pending;
  }
  #abandon() {
    const { events, held } = this.#options;
    if (this.#open.size > 0) {
      const error = new QueueError("The worker gave up before the outcomes of these jobs were written");
      events.emit("error", { error, during: `settling ${this.#open.size} jobs of '${held.queue}'` });
    }
    for (const pending of [...this.#open]) pending.answer("abandoned");
    this.#waiting = [];
    this.#locked = [];
    this.#refused = [];
  }
  /** @param part never rejects */
  #run(part) {
    this.#underWay.add(part);
    void part.then(() => this.#underWay.delete(part));
  }
  async #writeAll() {
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      const { batch, rest } = nextBatch(this.#waiting);
      this.#waiting = rest;
      await this.#write(batch);
    }
    this.#writing = false;
  }
  /** Never rejects: what cannot be written now is left to go on beside the batches. */
  async #write(batch) {
    try {
      this.#keepLocked(await this.#repeat(batch, "briefly"));
    } catch (error) {
      if (isAboutLocks(error)) await this.#writeBeside(batch);
      else this.#refuse(batch, error);
    }
  }
  /** The same without waiting for any row. */
  async #writeBeside(batch) {
    try {
      this.#keepLocked(await this.#repeat(batch, "skip"));
    } catch (error) {
      this.#refuse(batch, error);
    }
  }
  /** Writes a batch, again and again while the reason to fail is not in it. */
  async #repeat(batch, locks) {
    const { events, held, retries, giveUp } = this.#options;
    for (let delayMs = FIRST_RETRY_MS; !giveUp.aborted; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      try {
        return await writeSettlements(this.#options, batch, locks);
      } catch (error) {
        if (giveUp.aborted) break;
        if (!isAboutTheServer(error)) throw error;
        for (const one of batch) one.uncertain = true;
        events.emit("error", { error, during: `settling ${batch.length} jobs of '${held.queue}'` });
        if (await retries.sleep(delayMs, giveUp)) delayMs = FIRST_RETRY_MS;
      }
    }
    return [];
  }
  #refuse(batch, error) {
    const open = batch.filter(({ answered }) => !answered);
    const [only] = open;
    if (only === void 0 || this.#options.giveUp.aborted) return;
    if (open.length > 1) this.#halve(open);
    else if (isAboutLocks(error)) this.#keepLocked([only]);
    else only.refuse(error);
  }
  #halve(batch) {
    const middle = batch.length >> 1;
    this.#refused.push(batch.slice(0, middle), batch.slice(middle));
    if (this.#halving) return;
    this.#halving = true;
    this.#run(this.#writeHalves());
  }
  async #writeHalves() {
    for (; ; ) {
      const half = this.#refused.shift();
      if (half === void 0) break;
      await this.#writeBeside(half);
    }
    this.#halving = false;
  }
  #keepLocked(locked) {
    this.#locked.push(...locked.filter(({ answered }) => !answered));
    if (this.#unlocking || this.#locked.length === 0) return;
    this.#unlocking = true;
    this.#run(this.#writeLocked());
  }
  async #writeLocked() {
    let before = this.#locked.length;
    for (let delayMs = FIRST_LOCKED_MS; this.#locked.length > 0; delayMs = Math.min(delayMs * 2, MAX_LOCKED_MS)) {
      await sleep(delayMs, this.#options.giveUp);
      let waiting = this.#locked;
      this.#locked = [];
      while (waiting.length > 0) {
        const { batch, rest } = nextBatch(waiting);
        waiting = rest;
        await this.#writeBeside(batch);
      }
      if (this.#locked.length !== before) delayMs = FIRST_LOCKED_MS / 2;
      before = this.#locked.length;
    }
    this.#unlocking = false;
  }
};
function nextBatch(waiting) {
  const batch = /* @__PURE__ */ new Map();
  const again = [];
  let at = 0;
  for (let characters = 0; at < waiting.length && batch.size < MAX_BATCH; at++) {
    const next = waiting[at];
    if (next === void 0) break;
    characters += outputLength(next.transition);
    if (characters > MAX_BATCH_CHARACTERS && batch.size > 0) break;
    if (batch.has(next.id)) again.push(next);
    else batch.set(next.id, next);
  }
  return { batch: [...batch.values()], rest: [...again, ...waiting.slice(at)] };
}
function outputLength(transition) {
  return transition.type === "finish" ? transition.output?.length ?? 0 : 0;
}

// src/worker/time/jitter.ts
function jitter(ms) {
  return ms * (0.75 + Math.random() / 2);
}

// src/worker/claim/bands.ts
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

// src/worker/claim/hot-polling.ts
var MIN_GAP_MS = 2;
var HOT_MS = 300;
var GAP_SHARE = 4;
var HotPolling = class {
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

// src/worker/claim/lost-answers.ts
var SUSPECT_MS = 6e4;
var RELEASE_EVERY_MS = 5e3;
var LostAnswers = class {
  #suspectUntilMs = 0;
  #nextReleaseMs = 0;
  #awaited = false;
  /** Waits for the answer to a claim, and learns when that is lost. */
  async answerTo(claim) {
    this.#awaited = true;
    try {
      return await claim;
    } catch (error) {
      this.#suspectUntilMs = performance.now() + SUSPECT_MS;
      throw error;
    } finally {
      this.#awaited = false;
    }
  }
  /** Whether jobs may be held that this worker does not know of. */
  suspected(nowMs) {
    return this.#awaited || nowMs <= this.#suspectUntilMs;
  }
  releaseIsDue(nowMs) {
    return this.suspected(nowMs) && nowMs >= this.#nextReleaseMs;
  }
  noteRelease(nowMs) {
    this.#nextReleaseMs = nowMs + RELEASE_EVERY_MS;
  }
};

// src/worker/claim/claim-loop.ts
var MAX_ERROR_PAUSE_MS = 5e3;
var MAX_EXPECTED_MS = 2e3;
var ClaimLoop = class {
  #options;
  #held;
  bands = new Bands();
  #hotPolling;
  attempts;
  /** A slot is free, an outcome is written, the loop is stopped, or its queue is paused or resumed. */
  #changes = new Condition();
  #stopping = new AbortController();
  /** Rings when there may be something to claim. */
  #alarm = new Condition();
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
  /** How often this worker was declared gone and came back. */
  #returns = 0;
  constructor(options) {
    this.#options = options;
    const { environment, runner, queue, handlers, concurrency, events } = options;
    const { workerId } = environment;
    this.#held = { queue, workerId };
    this.#hotPolling = new HotPolling(options.pollIntervalMs);
    this.attempts = new Attempts({
      environment,
      handlers,
      concurrency,
      // A drain is to end.
      persistent: options.watch !== void 0,
      settler: new Settler({ ...options, ...environment, db: runner, held: this.#held }),
      events,
      onChange: () => {
        this.#changes.signal();
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
    this.#alarm.signal();
  }
  /** Claims at once, and stays hot: others may follow that do not notify. */
  notify() {
    this.#eventful = true;
    this.#expectant = true;
    this.#hotPolling.note(performance.now());
    this.#alarm.signal();
  }
  /** Claims until `stop` is called (or nothing is left, without a watch); answers how many jobs. Never rejects. */
  async run() {
    const { queue, pollIntervalMs, events, watch, retries } = this.#options;
    let failures = 0;
    let total = 0;
    while (!this.#stopping.signal.aborted) {
      const { demand } = this.attempts;
      if (demand <= 0) {
        if (watch === void 0 && this.attempts.paused && this.attempts.size === 0) return total;
        await this.#changes.wait();
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
        if (await retries.sleep(jitter(pauseMs), this.#stopping.signal)) failures = 0;
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
    this.attempts.stop();
    this.#changes.signal();
    this.#alarm.signal();
  }
  /** Resolves when no handler runs and every outcome is written. */
  async finished() {
    while (this.attempts.size > 0) await this.#changes.wait();
  }
  /** Tells every running handler that the worker stops. */
  interrupt(reason) {
    this.attempts.interrupt(reason);
  }
  /**
   * Gives back what is still held at the very end: by id, what could not be written; and only after a claim whose answer was lost,
   * what it may have taken, for which the whole queue is read.
   */
  async giveBack() {
    const { db, tables: tables2 } = this.#options.environment;
    await this.attempts.unwritten.giveBack(db, tables2, this.#held);
    if (this.#lostAnswers.suspected(performance.now())) await this.#release();
  }
  /** Gives back whatever this worker holds here without knowing. */
  async #release() {
    const { db, tables: tables2 } = this.#options.environment;
    await releaseJobs(db, tables2, { ...this.#held, except: this.attempts.jobs });
  }
  /** Ends the attempts whose jobs are no longer held: after this worker was declared gone for a while. */
  async endLostAttempts() {
    this.#returns++;
    const { unfinished } = this.attempts;
    if (unfinished.length === 0) return;
    const { db, tables: tables2 } = this.#options.environment;
    const jobs = unfinished.map(({ job }) => job);
    const held = await findHeldJobs(db, tables2, this.#held, jobs);
    this.attempts.endLost(unfinished, held);
  }
  async #claim(limit, sweep) {
    const { environment, runner, queue, handlers, events } = this.#options;
    const startMs = performance.now();
    if (this.#lostAnswers.releaseIsDue(startMs)) {
      await this.#release();
      this.#lostAnswers.noteRelease(startMs);
    }
    const quiet = this.attempts.size === 0;
    const told = this.#expectant;
    this.#expectant = false;
    const returns = this.#returns;
    const claim = claimJobs(runner, environment.tables, {
      ...this.#held,
      kinds: [...handlers.keys()],
      bands: this.bands.of(sweep),
      limit,
      fromGoneWorkers: sweep
    });
    const jobs = await this.#lostAnswers.answerTo(claim);
    const endMs = performance.now();
    this.bands.note({ jobs, short: sawTheEnd(limit, jobs), sweep, startMs, endMs });
    if (told && !sweep && jobs.length === 0) this.#expectant = true;
    if (jobs.length > 0) {
      this.#announced = false;
      this.#eventful = true;
      this.#hotPolling.note(endMs);
      events.emit("claimed", { queue, count: jobs.length, durationMs: endMs - startMs });
    }
    this.attempts.add(jobs);
    if (this.#returns !== returns && jobs.length > 0) await this.endLostAttempts();
    this.#foundNothing = quiet && jobs.length === 0;
    if (this.#foundNothing && !this.#announced) events.emit("idle", { queue });
    this.#announced ||= this.#foundNothing;
    return jobs.length;
  }
  /** Waits until another claim is worth its statement. */
  async #rest() {
    const { watch, pollIntervalMs } = this.#options;
    const gapMs = this.#hotPolling.gapMs(performance.now());
    if (gapMs !== void 0 && watch !== void 0) return void await this.#alarm.wait(gapMs);
    watch?.add(this, this.#eventful);
    this.#eventful = false;
    this.#atRest = true;
    this.#lookAfterLast();
    await this.#alarm.wait(watch === void 0 ? pollIntervalMs : Number.POSITIVE_INFINITY);
    this.#atRest = false;
    watch?.remove(this);
  }
  /** When the last job has ended it is time for another claim: it may have left one, and if not, the queue is idle. */
  #lookAfterLast() {
    if (this.#atRest && !this.#announced && this.attempts.size === 0) this.wake();
  }
  #expect(job, inMs) {
    if (job.queue !== this.queue || inMs === void 0 || inMs > MAX_EXPECTED_MS) return;
    this.#options.watch?.expect(this, inMs);
  }
};

// src/queries/find-due.ts
import { sql as sql42 } from "drizzle-orm";
async function findDue(runner, tables2, question) {
  const rows = await queryRows(runner, tables2, findDueQuery(tables2, question));
  return rows.map((row) => ({
    queue: String(row.queue),
    dueInMs: row.due_at === null ? void 0 : Number(row.due_at) - Number(row.now),
    nowMs: Number(row.now)
  }));
}
function findDueQuery({ queueJobs: queueJobs2, queueWorkers: queueWorkers2 }, question) {
  return sql42`
    select i.queue, min(${epochMs("j.run_at")}) as due_at, ${epochMs("statement_timestamp()")} as now
    from ${planAnew()} cross join jsonb_to_recordset(${JSON.stringify(question.looks.map(toLookRow))}::text::jsonb)
      as i(queue text, floor timestamptz, sweep bool)
    cross join generate_series(0, ${sql42.raw(String(MAX_PRIORITY))}) as band(priority)
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

// src/worker/claim/watch.ts
var GATHER_MS = 10;
var MAX_ERROR_PAUSE_MS2 = 5e3;
var Watch = class {
  #options;
  #idle = /* @__PURE__ */ new Set();
  #timers = /* @__PURE__ */ new Map();
  #alarm = new Condition();
  #over = false;
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
    if (anew) this.#alarm.signal();
  }
  remove(idle) {
    this.#idle.delete(idle);
  }
  /** Looks now: the interval has become another. */
  look() {
    this.#alarm.signal();
  }
  /** Wakes a queue in so many milliseconds, when one of its jobs is known to be due. */
  expect(idle, inMs) {
    if (this.#over) return;
    clearTimeout(this.#timers.get(idle));
    const timer = setTimeout(() => idle.wake(), Math.ceil(inMs) + 1);
    this.#timers.set(idle, timer);
  }
  async run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      await sleep(GATHER_MS, signal);
      if (signal.aborted) break;
      this.#alarm.clear();
      let pauseMs = Number.POSITIVE_INFINITY;
      if (this.#idle.size > 0) {
        const intervalMs = this.#options.intervalMs();
        pauseMs = jitter(intervalMs);
        try {
          await this.#look(intervalMs);
          failures = 0;
        } catch (error) {
          this.#options.events.emit("error", { error, during: "looking for due jobs" });
          pauseMs = jitter(Math.min(intervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS2));
        }
      }
      await this.#alarm.wait(pauseMs, signal);
    }
    this.#over = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
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
    for (const answer2 of answers) {
      const look = looks.get(answer2.queue);
      if (look !== void 0) this.#heed(look, answer2, startMs, endMs);
    }
  }
  #heed({ idle, sweep }, answer2, startMs, endMs) {
    const { dueInMs, nowMs } = answer2;
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

// src/queries/notify-workers.ts
import { sql as sql43 } from "drizzle-orm";
async function notifyWorkers(db, tables2, payload) {
  await queryRows(db, tables2, notifyWorkersQuery(tables2, payload));
}
function notifyWorkersQuery(tables2, payload) {
  return sql43`select pg_notify(${wakeChannel(tables2)}, ${payload})`;
}

// src/worker/presence/listener.ts
var ECHO_MS = 5e3;
var QUIET_MS = 6e4;
var FIRST_RETRY_MS2 = 100;
var MAX_RETRY_MS2 = 6e4;
var Listener = class {
  #options;
  #listening = false;
  /** A notification to itself has come back once: what is connected to is no pooler in transaction mode. */
  #proven = false;
  /** How often in a row listening has ended, or could not begin. */
  #failures = 0;
  /** Tests of connections that have not ended. */
  #tests = /* @__PURE__ */ new Set();
  constructor(options) {
    this.#options = options;
  }
  /** Whether notifications are known to arrive. */
  get listening() {
    return this.#listening;
  }
  async run(signal) {
    const { listen, onUnproven } = this.#options;
    if (listen === void 0) {
      onUnproven?.();
      this.#announcePolling(void 0);
    }
    if (listen !== void 0) await this.#keepListening(listen, signal);
    this.#listening = false;
    await Promise.all(this.#tests);
  }
  async #keepListening(listen, stopping) {
    while (!stopping.aborted) {
      const connection = new AbortController();
      const end = () => connection.abort();
      stopping.addEventListener("abort", end);
      const heard = new Condition();
      let tested = false;
      let error;
      try {
        await listen(
          wakeChannel(this.#options.tables),
          {
            ready: (listening) => {
              this.#options.onWake(void 0);
              if (!tested) this.#keepTesting(connection, heard, listening);
              tested = true;
            },
            notify: (payload) => {
              heard.signal();
              this.#options.onWake(payload);
            }
          },
          connection.signal
        );
        error = connection.signal.reason;
      } catch (thrown) {
        error = thrown;
      }
      stopping.removeEventListener("abort", end);
      connection.abort();
      heard.signal();
      if (stopping.aborted) return;
      this.#lose(error);
      const retryMs = Math.min(FIRST_RETRY_MS2 * 2 ** this.#failures++, MAX_RETRY_MS2);
      await this.#options.retries.sleep(jitter(retryMs), stopping);
    }
  }
  /** From now on the worker polls. */
  #lose(error) {
    const { events } = this.#options;
    if (this.#failures === 0) events.emit("error", { error, during: "listening" });
    const announced = !this.#listening && this.#failures > 0;
    this.#listening = false;
    if (!announced) this.#announcePolling(error);
  }
  #announcePolling(error) {
    this.#options.onPolling?.();
    this.#options.events.emit("polling", { error });
  }
  #keepTesting(connection, heard, listening) {
    const test = this.#test(connection, heard, listening).finally(() => this.#tests.delete(test));
    this.#tests.add(test);
  }
  /** Sends notifications to itself, now and whenever it has been quiet for long, until one does not come back. */
  async #test(connection, heard, listening) {
    const { db, tables: tables2, events, onProven, onUnproven } = this.#options;
    const { signal } = connection;
    const abandon = (reason) => {
      listening?.destroy(reason);
      connection.abort(reason);
    };
    const offer = () => {
      if (listening) onProven?.({ runner: listening.runner, signal, abandon });
    };
    if (listening === void 0) onUnproven?.();
    const offered = this.#proven;
    if (offered) offer();
    try {
      while (!signal.aborted) {
        heard.clear();
        await notifyWorkers(db, tables2, `test of ${crypto.randomUUID()}`);
        if (!await settlesWithin(heard.wait(Number.POSITIVE_INFINITY), ECHO_MS)) throw notHeard();
        if (signal.aborted) return;
        this.#failures = 0;
        if (!offered && !this.#proven) offer();
        this.#proven = true;
        if (!this.#listening) {
          this.#listening = true;
          events.emit("listening");
        }
        while (!signal.aborted) if (!await heard.wait(jitter(QUIET_MS))) break;
      }
    } catch (error) {
      onUnproven?.();
      abandon(error);
    }
  }
};
function notHeard() {
  return new QueueError(
    "A notification to itself did not reach this worker, so it polls. Behind PgBouncer in transaction mode none ever does: set listen: false"
  );
}

// src/queries/beat-worker.ts
import { sql as sql44 } from "drizzle-orm";
async function beatWorker(runner, tables2, worker) {
  const [row] = await queryRows(runner, tables2, beatWorkerQuery(tables2, worker));
  return row?.anew === true;
}
function beatWorkerQuery({ queueWorkers: queueWorkers2 }, { id, name, queues, session = void 0 }) {
  return sql44`
    insert into ${queueWorkers2} as w (id, name, queues, session) overriding system value
    values (${id}, ${name}, ${JSON.stringify(queues)}::text::jsonb, ${session ?? null}::int4)
    on conflict (id) do update set seen_at = statement_timestamp(), session = excluded.session
    returning (w.xmax = 0) as anew`;
}

// src/queries/check-workers.ts
import { sql as sql47 } from "drizzle-orm";

// src/sql/why-gone.ts
import { sql as sql46 } from "drizzle-orm";

// src/sql/session-key.ts
import { sql as sql45 } from "drizzle-orm";
function sessionKey({ queueWorkers: queueWorkers2 }, id) {
  return sql45`hashtextextended(${quotedName(queueWorkers2)}::text::regclass::oid::text, ${id})`;
}

// src/sql/why-gone.ts
var seenText = sql46`extract(epoch from w.seen_at)::text`;
function testedLock(tables2, self) {
  const key = sessionKey(tables2, sql46`w.id`);
  const isSelf = self === void 0 ? sql46`` : sql46`w.id = ${self}::int8 or `;
  return sql46`(
        select case
          when w.session = pg_backend_pid() then not (${isSelf}${key} = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(${key})
        end as free
      )`;
}
function whyGone({ silentMs, frozenMs, startRespiteMs }) {
  return sql46`case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then ${frozenMs}::float8 else ${silentMs}::float8 end * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp() - ${startRespiteMs}::float8 * interval '1 millisecond'
        then 'lost'
      end`;
}

// src/queries/check-workers.ts
async function checkWorkers(runner, tables2, options) {
  const rows = await queryRows(runner, tables2, checkWorkersQuery(tables2, options));
  const [row] = rows;
  return {
    workers: Number(row?.workers),
    startedAt: typeof row?.started === "string" ? row.started : void 0,
    unlocked: row?.unlocked === true,
    pid: Number(row?.pid),
    gone: rows.filter(({ id }) => id !== null).map(({ id, seen, why, session }) => ({
      id: Number(id),
      seen: String(seen),
      why,
      session: session === null ? void 0 : Number(session)
    }))
  };
}
function checkWorkersQuery(tables2, { worker, beat, limits }) {
  return sql47`
    with ${beat ? sql47`beat as (${beatWorkerQuery(tables2, worker)}
    ),
    ` : sql47``}seen as materialized (
      select w.id, w.session, extract(epoch from w.started_at)::text as started, ${seenText} as seen, l.free,
        ${whyGone(limits)} as why
      from ${tables2.queueWorkers} as w cross join lateral ${testedLock(tables2, worker.id)} as l
    )
    select own.*, pg_backend_pid() as pid, g.id, g.seen, g.why, g.session
    from (
      select count(distinct coalesce(s.session, -s.id)) as workers, max(s.started) filter (where s.id = ${worker.id}::int8) as started,
        bool_or(s.free) filter (where s.id = ${worker.id}::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> ${worker.id}::int8`;
}

// src/queries/remove-gone-workers.ts
import { sql as sql48 } from "drizzle-orm";
async function removeGoneWorkers(runner, tables2, workers, limits) {
  const rows = await queryRows(runner, tables2, removeGoneWorkersQuery(tables2, workers, limits));
  return rows.map(({ id, name }) => ({ id: Number(id), name: String(name) }));
}
function removeGoneWorkersQuery(tables2, workers, limits) {
  const { queueWorkers: queueWorkers2 } = tables2;
  const seen = workers.map(({ id, seen: seen2 }) => JSON.stringify({ id, seen: seen2 }));
  return sql48`
    with unchanged as materialized (
      select w.id, w.session, w.seen_at from ${queueWorkers2} as w
      where (w.id, ${seenText}) in (select i.id, i.seen from ${jsonRows(seen, "id int8, seen text")} as i)
      for update skip locked
    ),
    gone as materialized (
      select w.id, ${whyGone(limits)} as why from unchanged as w cross join lateral ${testedLock(tables2)} as l
    )
    delete from ${queueWorkers2} as w where w.id = any(array(select g.id from gone as g where g.why is not null))
    returning w.id, w.name`;
}

// src/queries/remove-worker.ts
import { sql as sql49 } from "drizzle-orm";
async function removeWorker(runner, tables2, id) {
  await queryRows(runner, tables2, removeWorkerQuery(tables2, id));
}
function removeWorkerQuery({ queueWorkers: queueWorkers2 }, id) {
  return sql49`delete from ${queueWorkers2} as w where w.id = ${id}`;
}

// src/queries/lock-session.ts
import { sql as sql50 } from "drizzle-orm";
var KEEPALIVES = {
  tcp_keepalives_idle: "5",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "10000"
};
async function lockSession(runner, tables2, workerId) {
  const [row] = await queryRows(runner, tables2, lockSessionQuery(tables2, workerId));
  return row?.locked === true ? Number(row.pid) : void 0;
}
function lockSessionQuery(tables2, workerId) {
  const settings = Object.entries(KEEPALIVES).map(
    ([name, value]) => sql50`set_config(${name}, ${value}, false)`
  );
  return sql50`
    select pg_try_advisory_lock(${sessionKey(tables2, sql50`${workerId}::int8`)}) as locked,
      pg_backend_pid() as pid, ${sql50.join(settings, sql50`, `)}`;
}

// src/queries/unlock-session.ts
import { sql as sql51 } from "drizzle-orm";
async function unlockSession(runner, tables2, workerId) {
  await queryRows(runner, tables2, unlockSessionQuery(tables2, workerId));
}
function unlockSessionQuery(tables2, workerId) {
  return sql51`select pg_advisory_unlock(${sessionKey(tables2, sql51`${workerId}::int8`)})`;
}

// src/worker/presence/session.ts
var FIRST_RETRY_MS3 = 50;
var MAX_RETRY_MS3 = 1e3;
var PROMPT_MS = 1e3;
var PATIENCE_MS = 1e4;
var Session = class {
  #options;
  #connection;
  /** The process id of the server's end of it. */
  #pid;
  /** The connection that has not answered yet. */
  #asked;
  constructor(options) {
    this.#options = options;
  }
  /**
   * The process id of the server's end of the connection that holds the lock; `undefined` when it is not held, as far as this
   * process knows.
   */
  get pid() {
    return this.#connection && this.#pid;
  }
  /** Takes the lock on this connection and keeps it until the connection is lost. Never rejects. */
  async hold(connection, workerId) {
    const { tables: tables2, events, onChange, onRefused } = this.#options;
    const { runner, signal } = connection;
    let pid;
    try {
      for (let retryMs = FIRST_RETRY_MS3; pid === void 0; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS3)) {
        pid = await lockSession(runner, tables2, workerId);
        if (signal.aborted) break;
        if (pid === void 0) await sleep(jitter(retryMs), signal);
      }
    } catch (error) {
      await sleep(MAX_RETRY_MS3, signal);
      if (signal.aborted) return;
      events.emit("error", { error, during: "taking the session lock" });
      onRefused();
      return;
    }
    if (signal.aborted) {
      if (pid !== void 0) await this.#unlock(connection, workerId);
      return;
    }
    this.#pid = pid;
    this.#connection = connection;
    signal.addEventListener(
      "abort",
      () => {
        if (this.#connection !== connection) return;
        void this.release(workerId);
        onChange();
      },
      { once: true }
    );
    onChange();
  }
  /**
   * The lock was found free. On another connection than the session's own that means that the server has ended the session, without
   * a word that has reached this process.
   *
   * @param pid of the connection that has found it so
   */
  noteUnlocked(pid) {
    if (pid === this.#pid) return;
    this.#connection?.abandon(new QueueError("The session lock of this worker is no longer held"));
  }
  /** Gives the lock back: others may use the connection on, and would keep it. */
  async release(workerId) {
    const connection = this.#connection;
    this.#connection = void 0;
    if (connection) await this.#unlock(connection, workerId);
  }
  async #unlock({ runner }, workerId) {
    await unlockSession(runner, this.#options.tables, workerId).catch(() => void 0);
  }
  /**
   * Runs statements on the session's connection; without a session, or when that does not answer promptly, on the pool. So they may
   * run twice, which is all the same for what liveness says.
   */
  runner = { execute: (query) => this.#execute(query) };
  async #execute(query) {
    const { db } = this.#options;
    const connection = this.#connection;
    if (connection === void 0 || this.#asked === connection) return await db.execute(query);
    const answer2 = this.#ask(connection, query);
    if (!await settlesWithin(answer2, PROMPT_MS)) {
      void this.#giveUpOn(connection, answer2);
      return await db.execute(query);
    }
    try {
      return await answer2;
    } catch (error) {
      if (!isLoss(error)) throw error;
      connection.abandon(error);
      return await db.execute(query);
    }
  }
  async #ask(connection, query) {
    this.#asked = connection;
    try {
      return await connection.runner.execute(query);
    } finally {
      if (this.#asked === connection) this.#asked = void 0;
    }
  }
  async #giveUpOn(connection, answer2) {
    if (await settlesWithin(answer2, PATIENCE_MS)) return;
    connection.abandon(new QueueError(`The connection that listens has not answered for ${PATIENCE_MS} ms`));
  }
};
function isLoss(error) {
  const sqlState = sqlStateOf(error);
  return sqlState === void 0 || /^(08|57P|25P03|E)/.test(sqlState);
}

// src/worker/presence/suspicion.ts
var MAX_GAP_MS = 4500;
var MIN_RESPITE_MS = 5e3;
var MAX_RESPITE_MS = 3e4;
var DISBELIEF = 4;
var Suspicion = class {
  #reconnectMs;
  #suspects = /* @__PURE__ */ new Map();
  #lastMs;
  #respiteUntilMs = Number.NEGATIVE_INFINITY;
  #several = false;
  constructor(reconnectMs) {
    this.#reconnectMs = reconnectMs;
  }
  /**
   * Learns from a check; answers who is to be declared gone now.
   *
   * @param nowMs of any monotonic clock
   */
  judge({ workers, gone }, nowMs) {
    const gapMs = nowMs - (this.#lastMs ?? nowMs);
    this.#lastMs = nowMs;
    if (gapMs > MAX_GAP_MS) this.rest(nowMs, gapMs);
    this.#suspects = new Map(
      gone.map((worker) => {
        const before = this.#suspects.get(worker.id);
        const same = before?.seen === worker.seen && before.why === worker.why;
        return [worker.id, same ? before : { ...worker, sinceMs: nowMs }];
      })
    );
    const lost = new Set(this.#lost.map(({ session }) => session)).size;
    this.#several = lost >= 2 && lost * 2 > workers;
    return [...this.#suspects.values()].filter((suspect) => this.#dueMs(suspect) <= nowMs);
  }
  /** Forgets its suspicions, and has none for a while: this worker was cut off itself, for so long. */
  rest(nowMs, cutOffMs = 0) {
    const respiteMs = Math.min(Math.max(cutOffMs, MIN_RESPITE_MS), MAX_RESPITE_MS);
    this.#respiteUntilMs = Math.max(this.#respiteUntilMs, nowMs + respiteMs);
    this.#suspects.clear();
  }
  /** In how many milliseconds the next suspect may be declared gone; `Infinity` when there is none. */
  inMs(nowMs) {
    const inMs = [...this.#suspects.values()].map((suspect) => this.#dueMs(suspect) - nowMs);
    return Math.min(...inMs.filter((ms) => ms > 0));
  }
  get #lost() {
    return [...this.#suspects.values()].filter(({ why }) => why === "lost");
  }
  #dueMs({ why, sinceMs }) {
    const confirmedMs = this.#reconnectMs * (this.#several ? DISBELIEF : 1);
    return Math.max(this.#respiteUntilMs, sinceMs + (why === "lost" ? confirmedMs : 0));
  }
};

// src/worker/presence/liveness.ts
var CHECK_MS = 1500;
var HEARTBEAT_MS = 4e3;
var MIN_PAUSE_MS = 50;
var FIRST_RETRY_MS4 = 250;
var MAX_RETRY_MS4 = 500;
var REPORT_EVERY_MS = 5e3;
var SESSION_WAIT_MS = 5e3;
var START_RESPITE_MS = 1e4;
var Liveness = class {
  #options;
  #limits;
  #session;
  #suspicion;
  #alarm = new Condition();
  /** The last look. */
  #looking = Promise.resolve(0);
  /** Takes of the session lock that have not ended. */
  #holding = /* @__PURE__ */ new Set();
  #left = false;
  /** How often a session was taken or lost. */
  #changes = 0;
  /** When the worker last showed itself, and after how many of these changes. */
  #shown = { atMs: performance.now(), changes: 0 };
  /** When it was registered, by the database. */
  #startedAt;
  /** It was declared gone, and has not looked yet what it has lost. */
  #wasGone = false;
  #failures = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;
  #markKnown = () => void 0;
  /** Fulfilled when the peers know of the session, or there is none to wait for. */
  #known = new Promise((resolve) => {
    this.#markKnown = resolve;
  });
  constructor(options) {
    this.#options = options;
    const { db, tables: tables2, events, silentMs, frozenMs, reconnectMs } = options;
    this.#limits = { silentMs, frozenMs, startRespiteMs: START_RESPITE_MS };
    this.#suspicion = new Suspicion(reconnectMs);
    let heldBefore = false;
    this.#session = new Session({
      db,
      tables: tables2,
      events,
      onChange: () => {
        if (heldBefore) this.#suspicion.rest(performance.now());
        heldBefore = true;
        this.#changes++;
        this.#alarm.signal();
      },
      onRefused: () => this.#markKnown()
    });
  }
  /** Notifications arrive on this connection, so it is this worker's own: its session is to be held on it. */
  holdSession(connection) {
    const holding = this.#session.hold(connection, this.#options.workerId).finally(() => this.#holding.delete(holding));
    this.#holding.add(holding);
  }
  /** There is no session to wait for. */
  expectNoSession() {
    this.#markKnown();
  }
  /**
   * Waits until peers can tell by this worker's session that it has died: it is held, and its row says so. Ends early
   * when no session is to be expected or the signal is aborted, and after a few seconds. Never rejects.
   */
  async untilSessionIsKnown(signal) {
    signal.addEventListener("abort", this.#markKnown, { once: true });
    if (signal.aborted) this.#markKnown();
    await resolvesWithin(this.#known, SESSION_WAIT_MS);
  }
  async run(signal) {
    let sleepMs = Math.random() * CHECK_MS;
    for (; ; ) {
      await this.#alarm.wait(sleepMs, signal);
      if (signal.aborted || this.#left) break;
      sleepMs = await this.look();
    }
    await Promise.all(this.#holding);
  }
  /** Takes the worker out of the living: it looks no more, or its next beat would bring it back. */
  async leave() {
    this.#left = true;
    this.#alarm.signal();
    await this.#looking;
    await removeWorker(this.#session.runner, this.#options.tables, this.#options.workerId);
    await this.#session.release(this.#options.workerId);
  }
  /**
   * Looks who is gone, and shows that this worker lives. Once before the first claim: what they held is due for it. Never rejects;
   * answers in how many milliseconds to look again.
   */
  look() {
    this.#looking = this.#look();
    return this.#looking;
  }
  async #look() {
    const { events, onReturn } = this.#options;
    this.#alarm.clear();
    try {
      await this.#check();
    } catch (error) {
      const nowMs = performance.now();
      if (nowMs - this.#reportedMs >= REPORT_EVERY_MS) {
        this.#reportedMs = nowMs;
        events.emit("error", { error, during: "the heartbeat" });
      }
      return Math.min(FIRST_RETRY_MS4 * 2 ** this.#failures++, MAX_RETRY_MS4);
    }
    if (this.#failures > 0) onReturn();
    this.#failures = 0;
    this.#reportedMs = Number.NEGATIVE_INFINITY;
    const suspectsMs = this.#suspicion.inMs(performance.now());
    return Math.max(Math.min(CHECK_MS, suspectsMs), MIN_PAUSE_MS);
  }
  async #check() {
    const { tables: tables2, workerId: id, name, queues, onDeclaredGone } = this.#options;
    const { runner, pid: session } = this.#session;
    const worker = { id, name, queues, session };
    const atMs = performance.now();
    const changes = this.#changes;
    const beat = changes !== this.#shown.changes || atMs - this.#shown.atMs >= HEARTBEAT_MS;
    const check4 = await checkWorkers(runner, tables2, { worker, beat, limits: this.#limits });
    if (beat) this.#shown = { atMs, changes };
    if (beat && session !== void 0) this.#markKnown();
    if (check4.unlocked) this.#session.noteUnlocked(check4.pid);
    this.#wasGone ||= check4.startedAt === void 0 || check4.startedAt !== (this.#startedAt ?? check4.startedAt);
    this.#startedAt = check4.startedAt;
    if (!beat && check4.startedAt === void 0) await beatWorker(runner, tables2, worker);
    if (this.#wasGone) {
      await faultPoint("liveness: returned");
      await onDeclaredGone();
    }
    this.#wasGone = false;
    const condemned = this.#suspicion.judge(check4, performance.now());
    if (condemned.length === 0) return;
    await faultPoint("liveness: checked");
    this.#announce(await removeGoneWorkers(runner, tables2, condemned, this.#limits));
  }
  #announce(removed) {
    if (removed.length > 0) this.#options.onOthersGone();
    for (const { id, name } of removed) this.#options.events.emit("gone", { workerId: id, name });
  }
};

// src/worker/time/retries.ts
var Retries = class {
  #sleeps = /* @__PURE__ */ new Set();
  /**
   * Sleeps `ms` milliseconds, until a try is worthwhile, or until the signal is aborted. Never rejects;
   * answers whether a try is worthwhile.
   */
  async sleep(ms, signal) {
    const now2 = new AbortController();
    const end = () => now2.abort();
    signal.addEventListener("abort", end);
    this.#sleeps.add(now2);
    if (!signal.aborted) await sleep(ms, now2.signal);
    this.#sleeps.delete(now2);
    signal.removeEventListener("abort", end);
    return now2.signal.aborted && !signal.aborted;
  }
  /** Ends all sleeps: without this a worker would be idle for up to 5 more seconds after an outage. */
  now() {
    for (const sleeping of this.#sleeps) sleeping.abort();
  }
};

// src/queries/prune-results.ts
import { sql as sql52 } from "drizzle-orm";
async function pruneResults(db, tables2, prune) {
  const [row] = await queryRows(db, tables2, pruneResultsQuery(tables2, prune));
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}
function pruneResultsQuery({ queueResults: queueResults2, queueWorkers: queueWorkers2 }, { retentionMs, limit }) {
  return sql52`
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
    select count(*)::float8 as pruned, (select count(*) from ${queueWorkers2})::float8 as workers from pruned`;
}

// src/worker/upkeep/prune.ts
var PRUNE_EVERY_MS = 6e4;
var BATCH = 1e3;
var SHARE = 1 / 10;
var Pruning = class {
  #options;
  constructor(options) {
    this.#options = options;
  }
  async run(signal) {
    const { retentionMs, firstWithinMs } = this.#options;
    if (retentionMs === Number.POSITIVE_INFINITY) return;
    if (firstWithinMs > 0) await sleep(Math.random() * firstWithinMs, signal);
    while (!signal.aborted) await sleep(jitter(await this.#prune()), signal);
  }
  /** Deletes a batch. Never rejects; answers how many milliseconds to rest. */
  async #prune() {
    const { db, tables: tables2, retentionMs, events } = this.#options;
    const startMs = performance.now();
    try {
      const { pruned, workers } = await pruneResults(db, tables2, { retentionMs, limit: BATCH });
      if (pruned < BATCH) return PRUNE_EVERY_MS;
      const tookMs = performance.now() - startMs;
      return Math.min(tookMs * (Math.max(workers, 1) / SHARE - 1), PRUNE_EVERY_MS);
    } catch (error) {
      events.emit("error", { error, during: "pruning results" });
      return PRUNE_EVERY_MS;
    }
  }
};

// src/queries/find-requests.ts
import { sql as sql53 } from "drizzle-orm";
async function findRequests(db, tables2, question) {
  const rows = await queryRows(db, tables2, findRequestsQuery(tables2, question));
  return {
    paused: new Set(rows.filter((row) => row.id === null).map((row) => String(row.queue))),
    jobs: rows.filter((row) => row.id !== null).map(toJobRequest)
  };
}
function findRequestsQuery({ queueJobs: queueJobs2, queuePauses: queuePauses2, queueResults: queueResults2 }, { workerId, queues, jobs }) {
  const pauses = sql53`
    select p.queue, null::int8 as id, null::int8 as fence, null::bool as held, null::text as cancel_reason from ${queuePauses2} as p
    where p.queue = any(array(select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb)))`;
  if (jobs.length === 0) return pauses;
  const queuesOfJobs = JSON.stringify(jobs.map(({ queue }) => queue));
  return sql53`${pauses}
    union all
    select i.queue, i.id, i.fence, j.id is not null, coalesce(j.cancel_reason, r.reason)
    from rows from (${idsAndFences(jobs)}, jsonb_array_elements_text(${queuesOfJobs}::text::jsonb)) as i(id, fence, queue)
    left join lateral (
      select j.id, j.cancel_reason from ${queueJobs2} as j
      where j.queue = i.queue and j.id = i.id and j.fence = i.fence and j.worker_id = ${workerId}::int8
      limit 1
    ) as j on true
    left join lateral (
      select r.errors -> -1 ->> 'message' as reason from ${queueResults2} as r
      where j.id is null and r.queue = i.queue and r.job_id = i.id and r.fence = i.fence and r.state = 'cancelled'
      limit 1
    ) as r on true
    where j.id is null or j.cancel_reason is not null`;
}
function toJobRequest(row) {
  return {
    id: Number(row.id),
    fence: Number(row.fence),
    held: row.held === true,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason)
  };
}

// src/worker/upkeep/requests.ts
var POLL_MS = 500;
var FALLBACK_MS = 5e3;
var GATHER_MS2 = 20;
var MAX_RETRY_MS5 = 5e3;
var REPORT_EVERY_MS2 = 5e3;
var Requests = class {
  #options;
  #alarm = new Condition();
  #reportedMs = Number.NEGATIVE_INFINITY;
  constructor(options) {
    this.#options = options;
  }
  /** Looks soon: there may be a request. */
  wake() {
    this.#alarm.signal();
  }
  async run(signal) {
    const { retries } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      if (failures > 0) await retries.sleep(jitter(Math.min(POLL_MS * 2 ** failures, MAX_RETRY_MS5)), signal);
      else await this.#alarm.wait(jitter(this.#options.listener.listening ? FALLBACK_MS : POLL_MS), signal);
      await sleep(GATHER_MS2, signal);
      if (signal.aborted) return;
      this.#alarm.clear();
      failures = await this.look() ? 0 : failures + 1;
    }
  }
  /**
   * Looks now, as before the first claim: a queue may be paused already. Never rejects; answers whether the
   * database has answered.
   */
  async look() {
    const { db, tables: tables2, workerId, loops, events } = this.#options;
    const running = loops.flatMap(({ attempts }) => attempts.running);
    try {
      const { paused, jobs } = await findRequests(db, tables2, {
        workerId,
        queues: loops.map(({ queue }) => queue),
        jobs: running.map(({ job }) => job)
      });
      for (const loop of loops) this.#pauseOrResume(loop, paused.has(loop.queue));
      for (const request of jobs) {
        const attempt = running.find(({ job }) => job.id === request.id && job.fence === request.fence);
        if (attempt !== void 0) tell(attempt, request);
      }
      this.#reportedMs = Number.NEGATIVE_INFINITY;
      return true;
    } catch (error) {
      const nowMs = performance.now();
      if (nowMs - this.#reportedMs >= REPORT_EVERY_MS2) {
        this.#reportedMs = nowMs;
        events.emit("error", { error, during: "looking for cancels and pauses" });
      }
      return false;
    }
  }
  #pauseOrResume(loop, paused) {
    const { queue, attempts, bands } = loop;
    if (paused === attempts.paused) return;
    if (paused) {
      attempts.pause();
    } else {
      attempts.resume();
      bands.sweepNext();
      loop.wake();
    }
    this.#options.events.emit(paused ? "paused" : "resumed", { queue });
  }
};
function tell(attempt, { held, cancelReason }) {
  const { kind, id } = attempt.job;
  if (held) {
    if (cancelReason !== null) attempt.cancel(cancelReason);
    return;
  }
  if (!attempt.open) return;
  attempt.end(
    cancelReason === null ? new LeaseLostError(kind, id) : new JobCancelledError(kind, id, cancelReason)
  );
}

// src/worker/parts.ts
var WATCH_MS = 1e3;
var FIRST_PRUNE_WITHIN_MS = 5e3;
function buildParts(options) {
  const { db, tables: tables2, handlers, settings, untilEmpty, workerId, events, giveUp } = options;
  const { concurrencyByQueue: concurrencyByQueue2, pollIntervalMs, retentionMs, listen } = settings;
  const environment = { db, tables: tables2, workerId };
  const retries = new Retries();
  const runner = preparing(
    db,
    (error) => events.emit("error", { error, during: "preparing a statement; from now on none is prepared" })
  );
  const listener = new Listener({
    db,
    tables: tables2,
    listen: listen && !untilEmpty ? listenOrPoll(db) : void 0,
    events,
    retries,
    onWake: (queue) => {
      if (queue === void 0 || queue === REQUESTED) requests.wake();
      if (queue === void 0) watch.look();
      else for (const loop of loops) if (loop.queue === queue) loop.notify();
    },
    // Without notifications both look more often.
    onPolling: () => {
      requests.wake();
      watch.look();
    },
    onProven: (connection) => liveness.holdSession(connection),
    onUnproven: () => liveness.expectNoSession()
  });
  const liveness = new Liveness({
    ...settings,
    db,
    tables: tables2,
    workerId,
    queues: [...concurrencyByQueue2.keys()],
    events,
    onDeclaredGone: async () => {
      await Promise.all(loops.map((loop) => loop.endLostAttempts()));
    },
    onOthersGone: () => {
      for (const loop of loops) {
        loop.bands.sweepNext();
        loop.wake();
      }
    },
    onReturn: () => retries.now()
  });
  const watch = new Watch({
    runner,
    tables: tables2,
    workerId,
    kinds: [...handlers.keys()],
    intervalMs: () => listener.listening ? Math.max(WATCH_MS, pollIntervalMs) : pollIntervalMs,
    events
  });
  const progress = [...concurrencyByQueue2.keys()].map(() => new Progress(environment, events));
  const loops = [...concurrencyByQueue2].map(
    ([queue, concurrency], at) => new ClaimLoop({
      environment: {
        ...environment,
        onProgress: (attempt, value) => progress[at]?.report(attempt, value)
      },
      runner,
      queue,
      handlers,
      concurrency,
      pollIntervalMs,
      events,
      watch: untilEmpty ? void 0 : watch,
      retries,
      giveUp
    })
  );
  const requests = new Requests({ ...environment, loops, listener, events, retries });
  const firstWithinMs = untilEmpty ? 0 : FIRST_PRUNE_WITHIN_MS;
  const pruning = new Pruning({ db, tables: tables2, retentionMs, firstWithinMs, events });
  return {
    loops,
    liveness,
    requests,
    background: [
      liveness,
      requests,
      ...progress,
      pruning,
      // A worker that ends when its queues are empty waits for nothing.
      ...untilEmpty ? [] : [watch, listener]
    ]
  };
}

// src/worker/stop.ts
var SETTLED_MS = 2500;
var GIVEN_UP_MS = 2750;
var LEFT_MS = 4250;
var ENDED_MS = 4750;
var RETRY_MS2 = 100;
async function stopGracefully(options) {
  const { parts, background, work, shutdownTimeoutMs, giveUp } = options;
  const { loops, liveness, requests } = parts;
  for (const loop of loops) loop.stop();
  requests.wake();
  const finished = work.then(() => Promise.all(loops.map((loop) => loop.finished())));
  const inTime = await resolvesWithin(finished, shutdownTimeoutMs);
  const startMs = performance.now();
  const left = (ms) => startMs + ms - performance.now();
  if (!inTime) {
    for (const loop of loops) loop.interrupt(new QueueError("The worker stops"));
    await resolvesWithin(finished, left(SETTLED_MS));
  }
  giveUp.abort();
  await resolvesWithin(finished, left(GIVEN_UP_MS));
  const tooLate = new AbortController();
  const giveBack2 = () => Promise.all(loops.map((loop) => twice(() => loop.giveBack(), tooLate.signal, options)));
  const leave = () => twice(() => liveness.leave(), tooLate.signal, options);
  await resolvesWithin(giveBack2().then(leave), left(LEFT_MS));
  tooLate.abort();
  await background.end(left(ENDED_MS));
}
async function twice(step, tooLate, { events }) {
  for (let tries = 0; tries < 2 && !tooLate.aborted; tries++) {
    if (tries > 0) await sleep(RETRY_MS2, tooLate);
    if (tooLate.aborted) return;
    try {
      await step();
      return;
    } catch (error) {
      events.emit("error", { error, during: "stopping" });
    }
  }
}

// src/worker/worker.ts
var START_MS = 3e3;
var Worker = class {
  #db;
  #tables;
  #handlers;
  #settings;
  #untilEmpty;
  #events = new WorkerEmitter();
  #background = new Background(this.#events);
  /** Ends a start that is under way, with the reason why another is refused. */
  #stopping = new AbortController();
  /** Ends the settling, at the very last. */
  #giveUp = new AbortController();
  #stopped;
  #markStopped = () => void 0;
  /** Resolves when no loop claims any more. */
  #work = Promise.resolve();
  #starting;
  #stop;
  /** @internal use {@link createWorker} */
  constructor(db, options, untilEmpty = false) {
    this.#settings = workerSettings(options);
    this.#db = db;
    this.#tables = options.queue.tables;
    this.#handlers = handlersByKind(options.handlers);
    this.#untilEmpty = untilEmpty;
    this.#stopped = new Promise((resolve) => {
      this.#markStopped = resolve;
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
   * Checks the database, registers, and begins to claim. Resolves when it claims, or when {@link stop} was
   * called meanwhile and has resolved; a second call changes nothing. Without an answer from the database it
   * waits as long as the driver does.
   *
   * @throws MissingMigrationError | UnsupportedPostgresError, or the driver's error when the database cannot be reached
   * @throws QueueError when the worker was stopped before: make a new one
   */
  async start() {
    this.#stopping.signal.throwIfAborted();
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = void 0;
      throw error;
    });
    const started = this.#starting.catch((error) => {
      if (error !== this.#stopping.signal.reason) throw error;
      return this.#stopped;
    });
    await Promise.race([started, this.#stopped]);
  }
  /**
   * Starts, and works until SIGINT, SIGTERM or {@link stop}; then stops gracefully and resolves. A second
   * signal ends the process at once, as signals do.
   */
  async run() {
    const forget = onFirstSignal(() => void this.stop());
    try {
      await this.start();
      await this.#stopped;
    } finally {
      forget();
    }
  }
  /**
   * Claims no more, lets handlers finish within `shutdownTimeoutMs`, aborts the signals of the others, gives
   * their jobs back without spending an attempt, and leaves. Once it has resolved nothing of the worker
   * runs, sends or listens any more. It takes at most `shutdownTimeoutMs` and 5 seconds, whatever the
   * database does. Can be called any number of times, also while the worker starts. Never rejects: what
   * fails is an `error` event, and jobs that could not be given back are found by other workers once it is
   * declared gone.
   */
  stop() {
    this.#stop ??= this.#stopGracefully();
    return this.#stop;
  }
  /** Resolves when the queues are empty (only for a worker that works until then). @internal */
  emptied() {
    return this.#work;
  }
  async #start() {
    const { concurrencyByQueue: concurrencyByQueue2, name } = this.#settings;
    const queues = [...concurrencyByQueue2.keys()];
    const { signal } = this.#stopping;
    await checkDatabase(this.#db, this.#tables);
    signal.throwIfAborted();
    const workerId = await registerWorker(this.#db, this.#tables, { name, queues });
    const parts = buildParts({
      db: this.#db,
      tables: this.#tables,
      handlers: this.#handlers,
      settings: this.#settings,
      untilEmpty: this.#untilEmpty,
      workerId,
      events: this.#events,
      giveUp: this.#giveUp.signal
    });
    if (!signal.aborted) await parts.liveness.look();
    if (!signal.aborted) await parts.requests.look();
    if (signal.aborted) return parts;
    this.#background.start(parts.background);
    if (!this.#untilEmpty) await parts.liveness.untilSessionIsKnown(signal);
    if (signal.aborted) return parts;
    this.#events.emit("started", { workerId, name, queues });
    this.#work = this.#runLoops(parts.loops);
    return parts;
  }
  async #runLoops(loops) {
    let claimed;
    do {
      claimed = await Promise.all(loops.map((loop) => loop.run()));
    } while (loops.length > 1 && claimed.some((jobs) => jobs > 0) && !this.#stopping.signal.aborted);
  }
  async #stopGracefully() {
    this.#stopping.abort(new QueueError("This worker has been stopped; create another"));
    const starting = Promise.resolve(this.#starting).catch(() => void 0);
    const parts = await resultWithin(starting, START_MS);
    if (parts !== void 0) {
      await stopGracefully({
        parts,
        background: this.#background,
        work: this.#work,
        events: this.#events,
        shutdownTimeoutMs: this.#settings.shutdownTimeoutMs,
        giveUp: this.#giveUp
      });
    }
    this.#events.emit("stopped");
    this.#markStopped();
  }
};
function createWorker(db, options) {
  return new Worker(db, options);
}

// src/worker/drain.ts
async function drain(db, options) {
  const { deadlineMs, ...workerOptions } = checkObject2("drain: its options", options);
  checkDurationMs("drain: deadlineMs", deadlineMs, 1, MAX_TIMER_MS);
  const settings = { ...workerOptions, shutdownTimeoutMs: 0 };
  const worker = new Worker(db, settings, true);
  const count = { completed: 0, failed: 0, discarded: 0, snoozed: 0, cancelled: 0, interrupted: 0 };
  for (const event of Object.keys(count)) {
    worker.on(event, () => {
      count[event]++;
    });
  }
  const over = new AbortController();
  const deadline = sleep(deadlineMs, over.signal).then(() => false);
  try {
    const emptied = worker.start().then(() => worker.emptied());
    const empty = await Promise.race([emptied.then(() => true), deadline]);
    await worker.stop();
    return { ...count, empty };
  } finally {
    over.abort();
  }
}

// src/queries/reclaim-job.ts
import { sql as sql54 } from "drizzle-orm";
async function reclaimJob(db, tables2, job) {
  const rows = await queryRows(db, tables2, reclaimJobQuery(tables2, job));
  return rows.length > 0;
}
function reclaimJobQuery(tables2, job) {
  return endHolds(tables2, {
    change: {
      claimedAt: sql54`statement_timestamp()`,
      set: sql54`attempt = j.attempt + 1, fence = j.fence + 1`
    },
    where: sql54`j.queue = ${job.queue} and j.id = ${job.id} and j.fence = ${job.fence}::int8 - 1`,
    returning: sql54`j.id`
  });
}

// src/worker/run-next.ts
async function runNext(db, options) {
  const handlers = checkRunOptions("runNext", options);
  if (typeof db?.transaction !== "function") throw new TypeError(`runNext: ${NO_DATABASE}`);
  const queues = options.queues ?? [...new Set(options.handlers.map(({ job }) => job.queue))];
  if (!Array.isArray(queues)) throw new TypeError(`runNext: queues must be an array, got ${shown(queues)}`);
  for (const queue of queues) {
    checkText2("runNext: the name of a queue", queue, MAX_NAME_BYTES);
    const ran = await runOne(
      db,
      options.queue.tables,
      handlers,
      queue
    );
    if (ran !== void 0) return ran;
  }
  return void 0;
}
var AbandonedAttempt = class extends Error {
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
        fromGoneWorkers: true,
        heedPauses: true
      });
      const handler = job === void 0 ? void 0 : handlers.get(job.kind);
      if (job === void 0 || handler === void 0) return void 0;
      const { attempt, outcome } = await runInSavepoint(tx, tables2, job, handler);
      await faultPoint("runNext: ran");
      if (!(attempt.completeRan && outcome.type === "completed")) {
        await write2(tx, tables2, attempt, transitionFor(outcome, attempt.facts));
      }
      return toRanJob(job, outcome);
    });
  } catch (error) {
    if (!(error instanceof AbandonedAttempt)) throw error;
    const { attempt, outcome } = error;
    await faultPoint("runNext: rolled back");
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
      if (attempt.reason !== void 0) throw new AbandonedAttempt(attempt, outcome);
      if (attempt.completeRan && outcome.type === "completed") {
        const held = await findHeldJobs(tx, tables2, attempt.held, [job]);
        if (held.get(job.id) === job.fence) outcome = outcomeIfStillHeld(attempt, outcome);
      }
      if (outcome.type === "failed") throw new Undo(outcome);
    });
  } catch (error) {
    if (error instanceof AbandonedAttempt) throw error;
    outcome = error instanceof Undo ? error.outcome : { type: "failed", error };
  }
  return {
    attempt,
    outcome: outcome ?? { type: "failed", error: new QueueError("The savepoint did not run") }
  };
}
async function write2(db, tables2, { job, held }, transition) {
  const { id, fence } = job;
  const written = transition.type === "finish" ? await finishJobs(db, tables2, held, [{ id, fence, transition }]) : await rescheduleJobs(db, tables2, held, [{ id, fence, transition }]);
  if (!written.has(job.id)) throw new LeaseLostError(job.kind, job.id);
}
async function writeAnew(db, tables2, attempt, outcome) {
  await db.transaction(async (tx) => {
    if (!await reclaimJob(tx, tables2, attempt.job)) return;
    await write2(tx, tables2, attempt, transitionFor(outcome, attempt.facts));
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
  JobCancelledError,
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
