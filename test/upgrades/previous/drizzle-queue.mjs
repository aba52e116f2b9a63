// @ts-nocheck: built, see README.md
var __defProp = Object.defineProperty;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __esm = (fn, res) => function __init() {
  return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
};
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};

// src/errors.ts
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
var QueueError, InvalidPayloadError, InvalidOutputError, UnknownKindError, JobTimeoutError, LeaseLostError, JobCancelledError, NonRetryableError, WorkerLostError, MissingMigrationError, UnsupportedPostgresError;
var init_errors = __esm({
  "src/errors.ts"() {
    "use strict";
    QueueError = class extends Error {
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
    InvalidPayloadError = class extends QueueError {
      constructor(kind, issues) {
        super(`The payload of '${kind}' is invalid: ${describeIssues(issues)}`);
        this.kind = kind;
        this.issues = issues;
      }
      name = "InvalidPayloadError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.InvalidPayloadError");
    };
    InvalidOutputError = class extends QueueError {
      constructor(kind, issues) {
        super(`The output of '${kind}' is invalid: ${describeIssues(issues)}`);
        this.kind = kind;
        this.issues = issues;
      }
      name = "InvalidOutputError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.InvalidOutputError");
    };
    UnknownKindError = class extends QueueError {
      name = "UnknownKindError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.UnknownKindError");
    };
    JobTimeoutError = class extends QueueError {
      constructor(kind, jobId, timeoutMs) {
        super(`Job ${jobId} ('${kind}') took longer than its timeoutMs of ${timeoutMs} ms`);
        this.kind = kind;
        this.jobId = jobId;
        this.timeoutMs = timeoutMs;
      }
      name = "JobTimeoutError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.JobTimeoutError");
    };
    LeaseLostError = class extends QueueError {
      constructor(kind, jobId, why = "another worker has claimed it, or it is already settled") {
        super(`Job ${jobId} ('${kind}') is no longer held by this worker: ${why}`);
        this.kind = kind;
        this.jobId = jobId;
      }
      name = "LeaseLostError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.LeaseLostError");
    };
    JobCancelledError = class extends QueueError {
      constructor(kind, jobId, reason) {
        super(`Job ${jobId} ('${kind}') is to be cancelled: ${reason}`);
        this.kind = kind;
        this.jobId = jobId;
        this.reason = reason;
      }
      name = "JobCancelledError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.JobCancelledError");
    };
    NonRetryableError = class extends QueueError {
      name = "NonRetryableError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.NonRetryableError");
    };
    WorkerLostError = class extends QueueError {
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
    MissingMigrationError = class extends QueueError {
      name = "MissingMigrationError";
      static brand = /* @__PURE__ */ Symbol.for("drizzle-queue.MissingMigrationError");
      /** @param entry what the app's schema must export beside the tables of the queue itself */
      constructor(what, options, entry) {
        super(
          `${what}. Run \`drizzle-kit generate && drizzle-kit migrate\` (your Drizzle schema must contain \`export * from 'drizzle-queue/schema'\`${entry === void 0 ? "" : ` and \`export * from '${entry}'\``})`,
          options
        );
      }
    };
    UnsupportedPostgresError = class extends QueueError {
      constructor(serverVersion) {
        super(`drizzle-queue needs PostgreSQL 14 or newer; this server is ${serverVersion}`);
        this.serverVersion = serverVersion;
      }
      name = "UnsupportedPostgresError";
      static brand = /* @__PURE__ */ Symbol.for(
        "drizzle-queue.UnsupportedPostgresError"
      );
    };
  }
});

// src/sql/executor.ts
import { getTableName } from "drizzle-orm";
async function queryRows(db, tables2, query, { withUsersSql = false, entry } = {}) {
  if (typeof db?.execute !== "function") throw new TypeError(NO_DATABASE);
  let result;
  try {
    result = await db.execute(query);
  } catch (error) {
    throw missingMigration(error, tables2, withUsersSql, entry) ?? error;
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
function missingMigration(error, tables2, withUsersSql, entry) {
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
  const what = `The queue's tables are not up to date (${message})`;
  return new MissingMigrationError(what, { cause: driverError }, entry);
}
var NO_DATABASE, UNDEFINED_TABLE, UNDEFINED_COLUMN;
var init_executor = __esm({
  "src/sql/executor.ts"() {
    "use strict";
    init_errors();
    NO_DATABASE = "drizzle-queue needs a Drizzle database or transaction as the first argument";
    UNDEFINED_TABLE = "42P01";
    UNDEFINED_COLUMN = "42703";
  }
});

// src/sql/quoted-name.ts
import { getTableConfig as getTableConfig3 } from "drizzle-orm/pg-core";
function quotedName(table) {
  const { schema, name } = getTableConfig3(table);
  return [schema, name].filter((part) => part !== void 0).map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}
var init_quoted_name = __esm({
  "src/sql/quoted-name.ts"() {
    "use strict";
  }
});

// src/queries/is-citus.ts
import { sql as sql24 } from "drizzle-orm";
async function isCitus(db, tables2) {
  const [row] = await queryRows(db, tables2, isCitusQuery);
  return row?.citus === true;
}
var hasCitus, isCitusQuery;
var init_is_citus = __esm({
  "src/queries/is-citus.ts"() {
    "use strict";
    init_executor();
    hasCitus = sql24`exists (select from pg_extension where extname = 'citus')`;
    isCitusQuery = sql24`select ${hasCitus} as citus`;
  }
});

// src/queries/find-silent-workers.ts
import { sql as sql26 } from "drizzle-orm";
async function findSilentWorkers(db, tables2, silentMs) {
  const rows = await queryRows(db, tables2, findSilentWorkersQuery(tables2, silentMs));
  return rows.map((row) => ({ name: String(row.name), silentMs: Number(row.silent_ms) }));
}
function findSilentWorkersQuery({ queueWorkers: queueWorkers2 }, silentMs) {
  return sql26`
    select w.name, extract(epoch from statement_timestamp() - w.seen_at)::float8 * 1000 as silent_ms
    from ${queueWorkers2} as w
    where w.seen_at < statement_timestamp() - ${silentMs}::float8 * interval '1 millisecond'
    order by w.seen_at limit 100`;
}
var init_find_silent_workers = __esm({
  "src/queries/find-silent-workers.ts"() {
    "use strict";
    init_executor();
  }
});

// src/queries/inspect-server.ts
import { sql as sql27 } from "drizzle-orm";
async function inspectServer(db, tables2) {
  const [row = {}] = await queryRows(db, tables2, inspectServerQuery);
  return {
    versionNumber: Number(row.number),
    version: String(row.version),
    product: String(row.product),
    readOnly: row.read_only === "on",
    standby: row.standby === "on",
    autovacuum: row.autovacuum === "on",
    hasMigrations: row.has_migrations === true
  };
}
var inspectServerQuery;
var init_inspect_server = __esm({
  "src/queries/inspect-server.ts"() {
    "use strict";
    init_executor();
    inspectServerQuery = sql27`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version, version() as product,
      current_setting('in_hot_standby', true) as standby,
      current_setting('transaction_read_only') as read_only, current_setting('autovacuum') as autovacuum,
      exists (select from pg_class where relname = '__drizzle_migrations') as has_migrations`;
  }
});

// src/queries/inspect-table.ts
import { sql as sql28 } from "drizzle-orm";
import { getTableConfig as getTableConfig4 } from "drizzle-orm/pg-core";
async function inspectTable(db, tables2, table) {
  const [row = {}] = await queryRows(db, tables2, inspectTableQuery(table));
  const parsed = (name) => JSON.parse(String(row[name] ?? "[]"));
  return {
    present: row.present === true,
    readable: row.readable === true,
    columns: parsed("columns"),
    indexes: parsed("indexes"),
    checks: parsed("checks"),
    partitionKeys: parsed("partition_keys"),
    storage: parsed("storage"),
    otherSchemas: parsed("other_schemas")
  };
}
function inspectTableQuery(table) {
  return sql28`
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
        select json_agg(a.attname) from pg_partitioned_table as p
        join pg_attribute as a on a.attrelid = p.partrelid and a.attnum = any(p.partattrs::int2[])
        where p.partrelid = s.id
      )::text as partition_keys,
      (
        select json_agg(coalesce(array_to_json(t.reloptions), '[]'))
        from part as p join pg_class as t on t.oid = p.id
        where t.relkind = 'r'
      )::text as storage,
      (
        select json_agg(n.nspname order by n.nspname)
        from pg_class as t join pg_namespace as n on n.oid = t.relnamespace
        where t.relname = ${getTableConfig4(table).name} and t.relkind in ('r', 'p')
          and t.oid is distinct from s.id
      )::text as other_schemas
    from sought as s`;
}
var init_inspect_table = __esm({
  "src/queries/inspect-table.ts"() {
    "use strict";
    init_executor();
    init_quoted_name();
  }
});

// src/queue/check/finding.ts
var MIGRATE;
var init_finding = __esm({
  "src/queue/check/finding.ts"() {
    "use strict";
    MIGRATE = "Run `npx drizzle-kit generate` and `npx drizzle-kit migrate`";
  }
});

// src/queue/check/check-columns.ts
import { getTableConfig as getTableConfig5 } from "drizzle-orm/pg-core";
function checkColumns(table, { columns }) {
  const name = quotedName(table);
  const declared = getTableConfig5(table).columns;
  const present = new Map(columns.map((column) => [column.name, column]));
  const missing = declared.filter((column) => !present.has(column.name));
  const known3 = new Set(declared.map((column) => column.name));
  const unexpected = columns.filter((column) => !known3.has(column.name) && column.notNull && !column.filled);
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
var COMPARABLE;
var init_check_columns = __esm({
  "src/queue/check/check-columns.ts"() {
    "use strict";
    init_quoted_name();
    init_finding();
    COMPARABLE = /^(bigint|boolean|date|double precision|integer|jsonb?|real|smallint|text|timestamp with time zone|uuid)$/;
  }
});

// src/queue/check/check-indexes.ts
import { getTableConfig as getTableConfig6 } from "drizzle-orm/pg-core";
function checkIndexes(table, state) {
  const name = quotedName(table);
  const { checks } = getTableConfig6(table);
  const missingChecks = checks.filter((check4) => !state.checks.includes(check4.name));
  return [
    ...expectedIndexes(table).flatMap((index3) => checkIndex(name, index3, state)),
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
  const { columns, indexes, primaryKeys } = getTableConfig6(table);
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
function checkIndex(table, expected, state) {
  if (state.indexes.some((index3) => matches(expected, index3, state.partitionKeys))) return [];
  const namesake = state.indexes.find((index3) => index3.name === expected.name);
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
function matches(expected, index3, partitionKeys) {
  if (expected.isPrimary) {
    const keys = expected.keys ?? [];
    const demanded = partitionKeys.filter((column) => !keys.includes(column));
    return index3.isPrimary && sorted(index3.keys) === sorted([...keys, ...demanded]);
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
var sorted, columnNames;
var init_check_indexes = __esm({
  "src/queue/check/check-indexes.ts"() {
    "use strict";
    init_quoted_name();
    init_finding();
    sorted = (keys) => columnNames(keys).sort().join();
    columnNames = (keys) => keys.map((key) => key.replaceAll('"', ""));
  }
});

// src/queue/check/check-presence.ts
import { getTableConfig as getTableConfig7 } from "drizzle-orm/pg-core";
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
  const names2 = missing.map(quotedName).join(", ");
  const some = missing.length < Object.values(tables2).length;
  const topLevel = `the schema file that drizzle-kit reads must have ${exportOf(tables2)} at its top level`;
  const migrated = hasMigrations ? ", though Drizzle has migrated it" : "";
  return {
    code: "tables-missing",
    severity: "error",
    message: some ? `${names2} ${missing.length === 1 ? "does" : "do"} not exist, though other tables of the queue do` : `None of the queue's tables exists in this database${migrated}`,
    fix: some ? `${MIGRATE}. If there is nothing to generate, not all tables are exported: ${topLevel}` : `${MIGRATE}. If there is nothing to generate, the tables are not exported, or inside an object, which drizzle-kit passes over: ${topLevel}`
  };
}
function exportOf(tables2) {
  const { schema, name } = getTableConfig7(tables2.queueJobs);
  const isDefault = name === "queue_jobs";
  if (schema === void 0 && isDefault) return "`export * from 'drizzle-queue/schema'`";
  const names2 = `{ ${Object.keys(tables2).join(", ")} }`;
  return schema === void 0 ? `\`export const ${names2} = createQueueTables({ \u2026 })\`` : `\`export const queueSchema = pgSchema('${schema}')\` and \`export const ${names2} = createQueueTables({ schema: queueSchema${isDefault ? "" : ", \u2026"} })\``;
}
var init_check_presence = __esm({
  "src/queue/check/check-presence.ts"() {
    "use strict";
    init_quoted_name();
    init_finding();
  }
});

// src/sql/schedule-tables.ts
async function queryScheduleRows(db, tables2, query) {
  return await queryRows(db, tables2, query, { entry: CONTROL_ENTRY });
}
var CONTROL_ENTRY;
var init_schedule_tables = __esm({
  "src/sql/schedule-tables.ts"() {
    "use strict";
    init_executor();
    CONTROL_ENTRY = "drizzle-queue/schema/control";
  }
});

// src/sql/server-facts.ts
function withServerFacts(tables2, known3) {
  const same = { ...tables2 };
  facts.set(same, known3);
  return same;
}
function withFactsOf(known3, tables2) {
  const same = { ...tables2 };
  const found2 = facts.get(known3);
  if (found2 !== void 0) facts.set(same, found2);
  return same;
}
function isDistributed(tables2) {
  return facts.get(tables2)?.distributed ?? false;
}
function isIdentified(tables2) {
  return facts.get(tables2)?.identified ?? true;
}
var facts;
var init_server_facts = __esm({
  "src/sql/server-facts.ts"() {
    "use strict";
    facts = /* @__PURE__ */ new WeakMap();
  }
});

// src/queries/check-grants.ts
import { sql as sql29 } from "drizzle-orm";
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
  const fires = "queueSchedules" in tables2;
  const needed = Object.entries(WORKER).flatMap(([key, privileges]) => {
    const table = Reflect.get(tables2, key);
    if (table === void 0) return [];
    const all = fires && key === "queueJobs" ? [...privileges, ...FIRING] : privileges;
    return all.map((privilege) => ({
      name: quotedName(table),
      privilege,
      of_columns: privilege !== "delete"
    }));
  });
  return sql29`
    select quote_ident(current_user) as role, n.name, n.privilege
    from jsonb_to_recordset(${JSON.stringify(needed)}::text::jsonb)
      as n(name text, privilege text, of_columns bool)
    where not case when n.of_columns then has_any_column_privilege(n.name, n.privilege)
      else has_table_privilege(n.name, n.privilege) end`;
}
var WORKER, FIRING;
var init_check_grants = __esm({
  "src/queries/check-grants.ts"() {
    "use strict";
    init_errors();
    init_executor();
    init_quoted_name();
    WORKER = {
      queueJobs: ["select", "update", "delete"],
      queueResults: ["select", "insert", "update", "delete"],
      queueWorkers: ["select", "insert", "update", "delete"],
      queuePauses: ["select"],
      queueSchedules: ["select", "insert", "update", "delete"]
    };
    FIRING = ["insert"];
  }
});

// src/queries/check-database.ts
import { sql as sql30 } from "drizzle-orm";
import { getTableConfig as getTableConfig8 } from "drizzle-orm/pg-core";
async function checkDatabase(db, tables2, control) {
  const rows = await queryRows(db, tables2, databaseStateQuery(control ?? tables2));
  const [server] = rows;
  if (Number(server?.number) < OLDEST_SUPPORTED) throw new UnsupportedPostgresError(String(server?.version));
  for (const [key, table] of Object.entries(control ?? tables2)) {
    const name = quotedName(table);
    const entry = table === control?.queueSchedules ? CONTROL_ENTRY : void 0;
    const missed = (what) => new MissingMigrationError(what, void 0, entry);
    const present = new Set(
      rows.filter((row) => row.key === key && row.name !== null).map((row) => row.name)
    );
    if (present.size === 0) throw missed(`The table ${name} does not exist`);
    const missing = getTableConfig8(table).columns.filter((column) => !present.has(column.name));
    if (missing.length > 0) {
      const names2 = missing.map((column) => column.name).join(", ");
      throw missed(`The table ${name} has no column ${names2}`);
    }
  }
  await checkGrants(db, control ?? tables2);
  const facts2 = { distributed: server?.citus === true, identified: server?.identified === true };
  return facts2.distributed || !facts2.identified ? withServerFacts(tables2, facts2) : tables2;
}
function databaseStateQuery(tables2) {
  const sought = Object.entries(tables2).map(([key, table]) => ({ key, name: quotedName(table) }));
  return sql30`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version, ${hasCitus} as citus,
      has_function_privilege('pg_control_system()', 'execute') as identified, t.key, a.attname as name
    from jsonb_to_recordset(${JSON.stringify(sought)}::text::jsonb) as t(key text, name text)
    left join pg_attribute as a
      on a.attrelid = to_regclass(t.name) and a.attnum > 0 and not a.attisdropped`;
}
var OLDEST_SUPPORTED;
var init_check_database = __esm({
  "src/queries/check-database.ts"() {
    "use strict";
    init_errors();
    init_executor();
    init_quoted_name();
    init_schedule_tables();
    init_server_facts();
    init_check_grants();
    init_is_citus();
    OLDEST_SUPPORTED = 14e4;
  }
});

// src/queue/check/check-server.ts
function checkServer(server) {
  const { versionNumber, version, product, readOnly, standby, autovacuum } = server;
  const findings = [];
  const stranger = STRANGERS.find(({ name }) => product.includes(name));
  if (stranger !== void 0) {
    findings.push({
      code: "not-postgres",
      severity: "error",
      message: `This server is ${stranger.name}, which ${stranger.lacks}`,
      fix: 'Keep the queue in PostgreSQL: the guide "Scaling" says which servers were tried'
    });
  }
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
      message: standby ? "This connection may only read: the server is a standby, or the reader of a cluster" : "This connection may only read: default_transaction_read_only is on for it",
      fix: standby ? "Connect to the primary, or to the endpoint of the cluster that writes" : "Turn it off for this role or database: alter role \u2026 set default_transaction_read_only = off"
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
var STRANGERS;
var init_check_server = __esm({
  "src/queue/check/check-server.ts"() {
    "use strict";
    init_check_database();
    STRANGERS = [
      { name: "CockroachDB", lacks: "refuses statements that change a table twice, so jobs cannot be ended" },
      { name: "Yugabyte", lacks: "was never tried, and claims there cost a message for each job they look at" },
      { name: "Redshift", lacks: "has no row locks, so no job can be claimed" }
    ];
  }
});

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
  const { attempt, fence, workerId, claimedAt: claimedAt2, cancelReason, progress } = queueJobs2;
  const written = new Set(
    [attempt, fence, workerId, claimedAt2, cancelReason, progress].map((column) => column.name)
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
var init_check_upkeep = __esm({
  "src/queue/check/check-upkeep.ts"() {
    "use strict";
    init_quoted_name();
  }
});

// src/queue/check/check-queue.ts
var check_queue_exports = {};
__export(check_queue_exports, {
  checkQueue: () => checkQueue
});
async function checkQueue(db, tables2, schedules) {
  const server = await inspectServer(db, tables2);
  const findings = checkServer(server);
  const states = /* @__PURE__ */ new Map();
  const all = Object.values(schedules?.tables ?? tables2);
  try {
    for (const table of all) states.set(table, await inspectTable(db, tables2, table));
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    return [...findings, permissionDenied(error)];
  }
  const stateOf = (table) => {
    const state = states.get(table);
    if (state === void 0) throw new Error("every table of the queue was inspected");
    return state;
  };
  findings.push(...missingTables(tables2, stateOf, server));
  if (schedules !== void 0 && !stateOf(schedules.tables.queueSchedules).present) {
    findings.push(schedules.missing);
  }
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
  return findings.sort((a, b2) => order.indexOf(a.severity) - order.indexOf(b2.severity));
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
var SILENT_MS, INSUFFICIENT_PRIVILEGE;
var init_check_queue = __esm({
  "src/queue/check/check-queue.ts"() {
    "use strict";
    init_find_silent_workers();
    init_inspect_server();
    init_inspect_table();
    init_executor();
    init_check_columns();
    init_check_indexes();
    init_check_presence();
    init_check_server();
    init_check_upkeep();
    SILENT_MS = 3e5;
    INSUFFICIENT_PRIVILEGE = "42501";
  }
});

// src/index.ts
init_errors();

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

// src/job/definition.ts
init_errors();

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
    // An absent schema is `undefined` in the type, too; TypeScript cannot follow that through the default.
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

// src/schema/own-columns.ts
import { getTableColumns, is } from "drizzle-orm";
import { getTableConfig, PgColumnBuilder, pgTable } from "drizzle-orm/pg-core";

// src/schema/queue-jobs.ts
import { sql } from "drizzle-orm";
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
      batchId: bigint("batch_id", { mode: "number" }),
      blockers: integer("blockers"),
      priority: smallint("priority").notNull().default(5),
      attempt: smallint("attempt").notNull().default(0),
      maxAttempts: smallint("max_attempts").notNull(),
      weight: smallint("weight").notNull().default(1),
      queue: text("queue").notNull(),
      kind: text("kind").notNull(),
      uniqueKey: text("unique_key"),
      waitingKey: text("waiting_key"),
      groupKey: text("group_key"),
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
      // whole queue. Only the claim repeats the predicate: PostgreSQL 18 skips over a leading column, and
      // without a predicate statements that name ids walked this index (47–74 ms for 200 jobs instead of 3).
      // Jobs of groups stand in the next index, so a plain claim cannot take one.
      index(`${name}_claim_idx`).on(t.priority, t.queue, t.runAt, t.id).where(sql`group_key is null`),
      index(`${name}_group_idx`).on(t.queue, t.groupKey, t.priority, t.runAt, t.id).where(sql`group_key is not null`),
      uniqueIndex(`${name}_unique_key_idx`).on(t.queue, t.kind, t.uniqueKey).where(sql`unique_key is not null`),
      uniqueIndex(`${name}_waiting_key_idx`).on(t.queue, t.kind, t.waitingKey).where(sql`waiting_key is not null`),
      // The members of a batch; no claim changes it.
      index(`${name}_batch_idx`).on(t.batchId).where(sql`batch_id is not null`),
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
      batchId: bigint2("batch_id", { mode: "number" }),
      priority: smallint2("priority").notNull(),
      attempt: smallint2("attempt").notNull(),
      maxAttempts: smallint2("max_attempts").notNull(),
      weight: smallint2("weight").notNull().default(1),
      queue: text2("queue").notNull(),
      kind: text2("kind").notNull(),
      state: text2("state").$type().notNull(),
      uniqueKey: text2("unique_key"),
      groupKey: text2("group_key"),
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
      // The outputs of a batch's members.
      index2(`${name}_batch_idx`).on(t.batchId).where(sql2`batch_id is not null`),
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
    const jobs = getTableColumns(defineJobsTable(pgTable, "queue_jobs", {}));
    const results = getTableColumns(
      defineResultsTable(pgTable, "queue_results", {})
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
  const known3 = found.get(queueJobs2);
  if (known3 !== void 0) return known3;
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
  const names2 = new Set(getTableConfig(queueResults2).columns.map(({ name }) => name));
  for (const { key, column } of ownColumnsOf(queueJobs2)) {
    if (!names2.has(column.name)) {
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
import { bigint as bigint3, integer as integer2, jsonb as jsonb3, text as text4, timestamp as timestamp4 } from "drizzle-orm/pg-core";
function defineWorkersTable(table, name) {
  const workers = table(name, {
    id: bigint3("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    name: text4("name").notNull(),
    queues: jsonb3("queues").$type().notNull(),
    startedAt: timestamp4("started_at", { withTimezone: true }).notNull().defaultNow(),
    seenAt: timestamp4("seen_at", { withTimezone: true }).notNull().defaultNow(),
    session: integer2("session"),
    // The server that holds the session's lock, where there are several behind one address.
    node: text4("node")
  });
  return workers;
}

// src/schema/table-place.ts
import { is as is2 } from "drizzle-orm";
import { PgSchema } from "drizzle-orm/pg-core";

// src/schema/declare-table.ts
import { pgTable as pgTable2 } from "drizzle-orm/pg-core";
function declareTableIn(schema) {
  return schema === void 0 ? pgTable2 : schema.table;
}

// src/schema/table-place.ts
function placeOf(caller, options) {
  const prefix = options?.prefix ?? "queue_";
  if (typeof prefix !== "string" || !/^[a-z_][a-z0-9_]{0,39}$/.test(prefix)) {
    const got = typeof prefix === "string" ? `'${prefix}'` : `a value of type ${typeof prefix}`;
    throw new TypeError(
      `${caller}: prefix must be 1\u201340 characters of a\u2013z, 0\u20139 and _, not starting with a digit; got ${got}`
    );
  }
  if (options?.schema !== void 0 && !(is2(options.schema, PgSchema) && isName(options.schema.schemaName))) {
    throw new TypeError(`${caller}: schema must be what pgSchema() returns for a name without NUL`);
  }
  return { prefix, table: declareTableIn(options?.schema) };
}
function isName(value) {
  return typeof value === "string" && value !== "" && !value.includes("\0");
}

// src/schema/create-queue-tables.ts
function createQueueTables(options = {}) {
  const { prefix, table } = placeOf("createQueueTables", options);
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
  const { tables: tables2, wakeUps, maxPayloadBytes, around, schedules } = options;
  if (wakeUps !== void 0) checkBoolean("createQueue: wakeUps", wakeUps);
  if (maxPayloadBytes !== void 0) {
    checkInteger("createQueue: maxPayloadBytes", maxPayloadBytes, 1, LARGEST_MAX_PAYLOAD_BYTES);
  }
  if (around !== void 0) checkAround(around);
  if (schedules !== void 0 && typeof schedules !== "function") {
    throw new TypeError(`createQueue: schedules must be schedulesIn(\u2026), got ${shown(schedules)}`);
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
function checkAround(around) {
  const { enqueue, run } = checkObject2("createQueue: around", around);
  for (const [name, given] of Object.entries({ enqueue, run })) {
    if (given !== void 0 && typeof given !== "function") {
      throw new TypeError(`createQueue: around.${name} must be a function, got ${shown(given)}`);
    }
  }
}

// src/job/new-job.ts
init_errors();

// src/job/stored-size.ts
init_errors();
function checkStoredSize(kind, path, json, maxBytes) {
  if (json.length * 3 <= maxBytes) return;
  const bytes = utf8Bytes(json);
  if (bytes <= maxBytes) return;
  const message = `${bytes} bytes of JSON are more than the ${maxBytes} that the queue's maxPayloadBytes allows; store it elsewhere and enqueue a reference to it, or raise the limit: createQueue({ maxPayloadBytes })`;
  throw new InvalidPayloadError(kind, [{ message, path }]);
}

// src/job/validate.ts
init_errors();
function payloadToStore(job, payload, maxBytes = DEFAULT_MAX_PAYLOAD_BYTES) {
  return toStore(job, job.payload, payload, InvalidPayloadError, maxBytes);
}
function outputToStore(job, output) {
  return toStore(job, job.output, output, InvalidOutputError, Number.POSITIVE_INFINITY);
}
function payloadFromStore(job, stored) {
  const value = job.payload === void 0 ? void 0 : parseStored(job, job.payload, stored);
  return value;
}
function parseStored(job, schema, stored) {
  const result = schema["~standard"].validate(stored);
  return "then" in result ? result.then((result2) => acceptStored(job, schema, stored, result2)) : acceptStored(job, schema, stored, result);
}
function acceptStored(job, schema, stored, result) {
  if (stored !== null || result.issues === void 0) return accepted(job, result, InvalidPayloadError);
  const absent = schema["~standard"].validate(void 0);
  const answer2 = (absent2) => accepted(job, absent2.issues === void 0 ? absent2 : result, InvalidPayloadError);
  return "then" in absent ? absent.then(answer2) : answer2(absent);
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
  if (job.payload === void 0 && payload !== void 0 && payload !== null) refusePayload(job);
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
function refusePayload({ kind }) {
  throw new TypeError(
    `enqueue('${kind}'): its definition has no payload, so its handler would not get this one. Write defineJob('${kind}', { payload: \u2026 }) with a schema or unvalidated<T>(); options without a payload are enqueue(db, job, undefined, { \u2026 }), or { \u2026 } without \`payload\` in enqueueMany`
  );
}
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
init_executor();

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
  const claimedAt2 = row.claimed_at === null ? null : dateOf(row.claimed_at);
  const state = row.state;
  switch (state) {
    case "waiting":
      return { ...common, ...live, state, runAt: null };
    case "scheduled":
    case "due":
      return { ...common, ...live, state };
    case "running":
      return { ...common, ...live, state, workerId: Number(workerId), claimedAt: claimedAt2 ?? common.runAt };
    case "completed":
      return {
        ...common,
        state,
        workerId,
        claimedAt: claimedAt2,
        finishedAt: dateOf(row.finished_at),
        output: row.output
      };
    case "discarded":
    case "cancelled":
      return { ...common, state, workerId, claimedAt: claimedAt2, finishedAt: dateOf(row.finished_at) };
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
init_executor();
async function findPauses(db, tables2) {
  const rows = await queryRows(db, tables2, findPausesQuery(tables2));
  return rows.map((row) => ({ queue: String(row.queue), pausedAt: dateOf(row.paused_at) }));
}
function findPausesQuery({ queuePauses: queuePauses2 }) {
  return sql7`
    select p.queue, ${epochMs("p.paused_at")} as paused_at from ${queuePauses2} as p order by p.queue`;
}

// src/queries/pause-queue.ts
init_executor();
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
init_executor();
import { sql as sql11 } from "drizzle-orm";

// src/queries/notify-workers.ts
init_executor();
import { sql as sql10 } from "drizzle-orm";
async function notifyWorkers(db, tables2, payload, channel = wakeChannel(tables2)) {
  await queryRows(db, tables2, notifyWorkersQuery(channel, payload));
}
function notifyWorkersQuery(channel, payload) {
  return sql10`select pg_notify(${channel}, ${payload})`;
}

// src/queries/resume-queue.ts
async function resumeQueue(db, tables2, resume) {
  const rows = await queryRows(db, tables2, resumeQueueQuery(tables2, resume.queue));
  if (rows.length === 0) return false;
  if (resume.channel !== void 0) await notifyWorkers(db, tables2, REQUESTED, resume.channel);
  return true;
}
function resumeQueueQuery({ queuePauses: queuePauses2 }, queue) {
  return sql11`delete from ${queuePauses2} as p where p.queue = ${queue} returning p.queue`;
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
import { sql as sql14 } from "drizzle-orm";
init_executor();

// src/sql/hold-end.ts
import { sql as sql12 } from "drizzle-orm";
function endHolds(tables2, { change, where, returning, ctes = sql12``, answer: answer2 }) {
  const ended = sql12`${changed(tables2, change)}
    where ${where}
    returning ${returning}`;
  if (answer2 === void 0) return sql12`${ctes}${ended}`;
  return sql12`${ctes},
    ${sql12.raw(answer2.name)} as (${ended}
    )${answer2.select}`;
}
function changed({ queueJobs: queueJobs2 }, change) {
  if (change === "delete") {
    return sql12`
    delete from ${queueJobs2} as j`;
  }
  const { set, from, holder = sql12`null`, claimedAt: claimedAt2 = sql12`null` } = change;
  return sql12`
    update ${queueJobs2} as j
    set worker_id = ${holder}, claimed_at = ${claimedAt2}, ${set}${from === void 0 ? sql12`` : sql12`
    from ${from}`}`;
}

// src/sql/recorded-error.ts
import { sql as sql13 } from "drizzle-orm";

// src/schema/attempt-error.ts
var KEPT_ERRORS = 10;

// src/sql/recorded-error.ts
var now = `to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
function withTime(error) {
  return sql13`${error} || jsonb_build_object('at', ${sql13.raw(now)})`;
}
function withError(errors, error) {
  const full = sql13`jsonb_array_length(${errors}) >= ${sql13.raw(String(KEPT_ERRORS))}`;
  return sql13`case when ${error} is null then ${errors}
        else (case when ${full} then ${errors} - 0 else ${errors} end) || ${error} end`;
}

// src/queries/cancel-job.ts
async function cancelJob(db, tables2, cancel3) {
  const rows = await queryRows(db, tables2, cancelJobQuery(tables2, cancel3));
  return rows.length > 0;
}
function cancelJobQuery(tables2, { id, queue, reason, force }) {
  const { queueJobs: queueJobs2, queueResults: queueResults2 } = tables2;
  const own = ownColumnsOf(queueJobs2);
  const free = sql14`
    with free as (
      select j.id from ${queueJobs2} as j
      where j.queue = ${queue} and j.id = ${id}${force === void 0 ? sql14` and j.worker_id is null` : sql14``}
      for no key update skip locked
    )`;
  const insert = sql14`
    insert into ${queueResults2} (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at, claimed_at,
      finished_at${ownNames(own)})
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      ${withError(sql14`c.errors`, sql14`(${withTime(sql14`${JSON.stringify(reason)}::text::jsonb`)})`)},
      c.attempt, c.max_attempts, c.priority, c.weight, c.fence, c.batch_id, c.unique_key, c.group_key,
      c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()${ownNames(own, "c.")}
    from cancelled as c
    returning job_id`;
  const waking = (channel) => sql14`,
    recorded as (${insert})
    select r.job_id, ${notified(channel, sql14`${REQUESTED}`)} as woke from recorded as r`;
  return endHolds(tables2, {
    ctes: free,
    change: "delete",
    where: sql14`j.queue = ${queue} and j.id = any(array(select id from free))`,
    returning: sql14`j.*`,
    answer: { name: "cancelled", select: force?.channel === void 0 ? insert : waking(force.channel) }
  });
}

// src/queries/request-cancel.ts
init_executor();
import { sql as sql15 } from "drizzle-orm";
async function requestCancel(db, tables2, request) {
  const rows = await queryRows(db, tables2, requestCancelQuery(tables2, request));
  if (rows.length === 0) return false;
  if (request.channel !== void 0) await notifyWorkers(db, tables2, REQUESTED, request.channel);
  return true;
}
function requestCancelQuery({ queueJobs: queueJobs2 }, { id, queue, reason }) {
  return sql15`
    with held as (
      select j.id from ${queueJobs2} as j
      where j.queue = ${queue} and j.id = ${id} and j.worker_id is not null
      for no key update skip locked
    )
    update ${queueJobs2} as j set cancel_reason = coalesce(j.cancel_reason, ${reason}::text)
    where j.queue = ${queue} and j.id = any(array(select id from held))
    returning j.id`;
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

// src/queue/enqueue-around.ts
init_errors();

// src/queue/around.ts
init_errors();
async function goAround(surrounded) {
  const { name, around, argument, step, onLeft } = surrounded;
  let inner;
  let underWay = false;
  let over = false;
  const next = () => {
    if (inner !== void 0) return Promise.reject(calledTwice(name));
    if (over) return Promise.reject(new QueueError(`${name} called next() after it had ended`));
    underWay = true;
    inner = step().finally(() => {
      underWay = false;
    });
    inner.catch(() => void 0);
    return inner;
  };
  try {
    await around(argument, next);
  } catch (error) {
    if (onLeft === void 0) await inner?.catch(() => void 0);
    else if (underWay) onLeft(error);
    throw error;
  } finally {
    over = true;
  }
  if (inner === void 0) throw new QueueError(`${name} did not call next(), so nothing was done inside it`);
  return await inner;
}
function calledTwice(name) {
  return new QueueError(`${name} called next() twice`);
}

// src/queue/enqueue-jobs.ts
init_errors();

// src/queries/find-standing-jobs.ts
init_executor();
import { sql as sql17 } from "drizzle-orm";

// src/sql/json-rows.ts
import { sql as sql16 } from "drizzle-orm";
var MAX_PARAMETER_CHARACTERS = 32 * 1024 * 1024;
function jsonRows(rows, columns) {
  const names2 = columns.split(",").map((column) => column.trim().split(" ")[0] ?? "");
  const parts = partsOf(rows).map(
    ({ before, rows: rows2 }) => sql16`
        select ${sql16.raw(names2.map((name) => `r.${name}`).join(", "))}, ${placeAfter(before)} as place
        from rows from (jsonb_to_recordset(${`[${rows2.join(",")}]`}::text::jsonb) as (${sql16.raw(columns)}))
          with ordinality as r(${sql16.raw(names2.join(", "))}, place)`
  );
  return sql16`(${sql16.join(parts, sql16` union all `)})`;
}
function jsonElements(values) {
  const parts = partsOf(values).map(
    ({ before, rows }) => sql16`
        select r.element, ${placeAfter(before)} as place
        from jsonb_array_elements(${`[${rows.join(",")}]`}::text::jsonb)
          with ordinality as r(element, place)`
  );
  return sql16`(${sql16.join(parts, sql16` union all `)})`;
}
function placeAfter(before) {
  return sql16.raw(before === 0 ? "r.place" : `${before} + r.place`);
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
  return sql17`
    select i.place, j.id
    from ${jsonRows(keys, "queue text, kind text, unique_key text")} as i
    join ${queueJobs2} as j on j.queue = i.queue and j.kind = i.kind and j.unique_key = i.unique_key`;
}

// src/queries/insert-jobs.ts
import { sql as sql19 } from "drizzle-orm";
init_executor();

// src/sql/job-rows.ts
import { sql as sql18 } from "drizzle-orm";
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
    return sql18`
      select ${first.queue}::text as queue, ${first.kind}::text as kind,
        ${first.payload}::text::jsonb as payload, ${first.priority}::int2 as priority,
        coalesce(to_timestamp(${first.runAtMs}::float8 / 1000),
          statement_timestamp() + ${first.delayMs}::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${first.maxAttempts}::int2 as max_attempts,
        ${first.uniqueKey}::text as unique_key, ${first.metadata}::text::jsonb as metadata, 1 as place`;
  }
  const ownSettings = own.map(toOwnSetting);
  const varying = varyingSettings(first, jobs, ownSettings);
  const value = (setting) => varying.includes(setting) ? sql18.raw(`r.${setting.column}`) : parameter(setting, first);
  const { payload, rows } = payloads(jobs, varying);
  return sql18`
      select ${value(QUEUE)} as queue, ${value(KIND)} as kind, ${payload} as payload,
        ${value(PRIORITY)} as priority,
        coalesce(to_timestamp(${value(RUN_AT)} / 1000),
          statement_timestamp() + ${value(DELAY)} * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${value(MAX_ATTEMPTS2)} as max_attempts,
        ${value(UNIQUE_KEY)} as unique_key,
        ${value(METADATA)} as metadata${sql18.join(
    ownSettings.map(({ column, text: text5, leftOut }) => {
      const given = ownValue(column, value(text5));
      const anyLeftOut = varying.includes(leftOut);
      const chosen = anyLeftOut ? sql18`case when ${value(leftOut)} then ${ownDefault(column)} else ${given} end` : given;
      return sql18`, ${chosen} as ${sql18.raw(`own_${column.index}`)}`;
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
  return type === "jsonb" ? sql18`${of(job)}::text::jsonb` : sql18`${of(job)}::${sql18.raw(type)}`;
}
function payloads(jobs, varying) {
  if (varying.length === 0) {
    return { payload: sql18`r.element`, rows: jsonElements(jobs.map(({ payload }) => payload)) };
  }
  const rows = jsonRows(
    jobs.map((job) => rowOf(job, varying)),
    ["payload jsonb", ...varying.map(({ column, type }) => `${column} ${type}`)].join(", ")
  );
  return { payload: sql18`coalesce(r.payload, 'null'::jsonb)`, rows };
}
function rowOf(job, varying) {
  const settings = varying.map(({ column, type, of }) => {
    const value = of(job);
    return `,"${column}":${type === "jsonb" ? value : JSON.stringify(value)}`;
  });
  return `{"payload":${job.payload}${settings.join("")}}`;
}

// src/queries/insert-jobs.ts
init_quoted_name();
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
  const unlessDuplicate = jobs.some(hasKey) ? UNLESS_DUPLICATE : sql19``;
  const own = givenColumns(queueJobs2, jobs);
  const insert = sql19`
    insert into ${queueJobs2} (${COLUMNS}${ownNames(own)})
    select ${COLUMNS}${ownValues(own)} from (${jobRows(jobs, own)}) as i order by place${unlessDuplicate}
    returning id`;
  if (wakeUp === void 0) return insert;
  return sql19`
    with inserted as (${insert}, queue, run_at)
    select i.id, ${woke(jobs, wakeUp)} from inserted as i`;
}
function insertKeyedJobsQuery({ queueJobs: queueJobs2 }, jobs, wakeUp) {
  const own = givenColumns(queueJobs2, jobs);
  return sql19`
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
    select n.place, i.id, ${wakeUp === void 0 ? sql19`null as woke` : woke(jobs, wakeUp)}
    from inserted as i join numbered as n on n.id = i.id`;
}
var COLUMNS = sql19.raw(
  "queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata"
);
function givenColumns(queueJobs2, jobs) {
  return ownColumnsOf(queueJobs2).flatMap(
    (column, index3) => jobs.some(({ own }) => own?.[index3] !== void 0) ? [{ ...column, index: index3 }] : []
  );
}
function ownValues(own) {
  return sql19.raw(own.map(({ index: index3 }) => `, own_${index3}`).join(""));
}
var UNLESS_DUPLICATE = sql19`
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing`;
function woke(jobs, { channel, queues }) {
  const mixed = jobs.some(({ queue }) => queue !== jobs[0]?.queue);
  return sql19`case when i.run_at <= statement_timestamp()${mixed ? sql19` and ${JSON.stringify(queues)}::text::jsonb @> to_jsonb(i.queue)` : sql19``} then ${notified(channel, sql19`i.queue`)} end as woke`;
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

// src/queue/enqueue-around.ts
var NAME = "around.enqueue";
async function insertAround(db, { tables: tables2, wakeUps, around, maxPayloadBytes }, jobs, entries) {
  if (around === void 0 || jobs.length === 0) return await enqueueJobs(db, tables2, jobs, wakeUps);
  const shown2 = jobs.map((job, at) => jobToEnqueue(job, entries[at]?.payload));
  let enqueued = [];
  await goAround({
    name: NAME,
    around,
    argument: Object.freeze(shown2),
    step: async () => {
      const changed3 = jobs.map((job, at) => withMetadataOf(shown2[at], job, maxPayloadBytes));
      enqueued = await enqueueJobs(db, tables2, changed3, wakeUps);
      return [...enqueued];
    }
  });
  return enqueued;
}
async function insertOneAround(db, settings, job, payload) {
  const [enqueued] = await insertAround(db, settings, [job], [{ payload }]);
  if (enqueued === void 0) throw new QueueError("The insert returned no row");
  return enqueued;
}
async function insertFromAround(around, job, insert) {
  const shown2 = Object.freeze({ ...job, uniqueKey: null, payload: void 0 });
  let answer2;
  await goAround({
    name: NAME,
    around,
    argument: Object.freeze([shown2]),
    step: async () => {
      answer2 = { value: await insert(shown2.metadata) };
      return void 0;
    }
  });
  if (answer2 === void 0) throw new QueueError("The insert did not answer");
  return answer2.value;
}
function makeAround({ around, maxPayloadBytes }, job, payload, make) {
  if (around === void 0) return make(job);
  const shown2 = jobToEnqueue(job, payload);
  let made;
  let over = false;
  const next = async () => {
    if (made !== void 0) throw calledTwice(NAME);
    if (over) throw notAtOnce();
    try {
      made = { value: make(withMetadataOf(shown2, job, maxPayloadBytes)) };
    } catch (error) {
      made = { error };
      throw error;
    }
  };
  const heard = () => {
    const answer2 = next();
    answer2.catch(() => void 0);
    return answer2;
  };
  Promise.resolve(around(Object.freeze([shown2]), heard)).catch(() => void 0);
  over = true;
  if (made === void 0) throw notAtOnce();
  if ("error" in made) throw made.error;
  return made.value;
}
function notAtOnce() {
  return new QueueError(
    `${NAME} did not call next() before it awaited something or ended; enqueueQuery returns its query at once`
  );
}
function jobToEnqueue({ kind, queue, priority, uniqueKey, metadata }, payload) {
  const own = JSON.parse(metadata);
  return Object.freeze({ kind, queue, priority, uniqueKey, payload, metadata: own });
}
function withMetadataOf(shown2, job, maxBytes) {
  if (shown2 === void 0) return job;
  return { ...job, metadata: metadataToStore(job.kind, shown2.metadata, maxBytes) };
}

// src/queue/enqueue-from.ts
import { Column, is as is5, SQL as SQL2, sql as sql21 } from "drizzle-orm";

// src/queries/insert-selected-jobs.ts
init_executor();
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
  const names2 = ownNames(own.map(({ column }) => column));
  const insert = sql20`
      insert into ${queueJobs2}
        (queue, kind, max_attempts, payload, priority, run_at, created_at, unique_key, metadata${names2})`;
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
        (queue, kind, max_attempts, created_at, payload, priority, run_at, unique_key, metadata${names2})
      select ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, statement_timestamp(), i.*
      from i order by unique_key
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning run_at
    )
    select (select count(*) from i)::float8 as selected, e.* from (${enqueued}) as e`;
}

// src/queue/enqueue-from.ts
async function enqueueFrom(db, { tables: tables2, own, wakeUps, maxPayloadBytes, around }, job, select, options) {
  const jobs = selectedJobs(job, select, options, own, maxPayloadBytes);
  if (around === void 0) return await insert(jobs);
  const { kind, queue } = jobs;
  const shown2 = { kind, queue, priority: void 0, metadata: { ...options?.metadata } };
  return await insertFromAround(
    around,
    shown2,
    (metadata) => insert({ ...jobs, metadata: metadataOf(kind, metadata, maxPayloadBytes) })
  );
  async function insert(jobs2) {
    const send = (wakeUp) => insertSelectedJobs(db, tables2, jobs2, wakeUp);
    const { enqueued, duplicates } = wakeUps === void 0 ? await send() : await wakeUps.allow(db, jobs2.mayBeDue ? [jobs2.queue] : [], send);
    return { enqueued, duplicates };
  }
}
function selectedJobs(job, select, options = {}, own = [], maxMetadataBytes = DEFAULT_MAX_PAYLOAD_BYTES) {
  const what = (option) => `enqueueFrom('${job.kind}'): ${option}`;
  checkObject2(what("its options"), options);
  if (typeof select?.as !== "function") throw new TypeError(`${what("the select")} ${NO_SELECT}`);
  if (options.uniqueKey !== void 0 && typeof options.uniqueKey !== "function") {
    throw new TypeError(
      `${what("uniqueKey")} must be a function of the row, which returns an SQL expression`
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
    metadata: metadataOf(job.kind, options.metadata, maxMetadataBytes),
    own: own.flatMap(
      (column) => ownSelected(column, Reflect.get(options, column.key), row, what("the options"))
    )
  };
}
function metadataOf(kind, metadata, maxBytes) {
  return sql21`${metadata === void 0 ? "{}" : metadataToStore(kind, metadata, maxBytes)}::text::jsonb`;
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

// src/queries/insert-one-job.ts
init_executor();
import { sql as sql22 } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
function insertOneJobQuery(db, tables2, job, wakeUp) {
  const builder = new QueryBuilder();
  const { queueJobs: queueJobs2 } = tables2;
  const inserted = builder.$with("inserted", {}).as(sql22`${insertJobsQuery(tables2, [job])}, run_at`);
  const standing = job.uniqueKey === null ? sql22`null` : sql22`(
        select j.id from ${queueJobs2} as j
        where j.queue = ${job.queue} and j.kind = ${job.kind} and j.unique_key = ${job.uniqueKey})`;
  const fields = {
    id: sql22`coalesce(i.id, ${standing})`.mapWith(Number).as("id"),
    // Part of a column that is read, or Postgres may leave the notification out.
    duplicate: (wakeUp === void 0 ? sql22`i.id is null` : sql22`coalesce((select not w.woke from woke as w), i.id is null)`).as("duplicate")
  };
  const woke2 = wakeUp && builder.$with("woke", {}).as(sql22`
    select ${notified(wakeUp.channel, sql22`${job.queue}::text`)} as woke from inserted as i
    where i.run_at <= statement_timestamp()`);
  const enqueued = builder.$with("enqueued", fields).as(sql22`
    select ${fields.id.sql} as id, ${fields.duplicate.sql} as duplicate
    from (select 1) as one left join inserted as i on true`);
  return primaryOf(db).with(...[inserted, woke2, enqueued].filter((cte) => cte !== void 0)).select().from(enqueued).$withCache(false);
}
function primaryOf(db) {
  if (typeof db?.with !== "function" || typeof Reflect.get(db, "execute") !== "function")
    throw new TypeError(NO_DATABASE);
  return Reflect.get(db, "$primary") ?? db;
}

// src/queue/enqueue-query.ts
function enqueueQuery(db, settings, job, payload, options) {
  const { tables: tables2, own, wakeUps, maxPayloadBytes } = settings;
  const made = newJob(job, payload, options, maxPayloadBytes);
  if ("then" in made) {
    made.then(void 0, () => void 0);
    throw new TypeError(
      `enqueueQuery('${job.kind}'): the payload's schema is asynchronous, and a query must be there at once; use enqueue, or a schema without async checks`
    );
  }
  return makeAround(settings, withOwn(own, made, options), payload, (job2) => {
    const wakeUp = mayBeDue(job2) ? wakeUps?.draw(job2.queue) : void 0;
    return insertOneJobQuery(db, tables2, job2, wakeUp);
  });
}

// src/queries/list-jobs.ts
import { sql as sql23 } from "drizzle-orm";
init_executor();
async function listJobs(db, tables2, page) {
  const rows = await queryRows(db, tables2, listJobsQuery(tables2, page));
  const own = ownColumnsOf(tables2.queueJobs);
  return rows.map((row) => toJobRecord(row, own));
}
function listJobsQuery(tables2, page) {
  const { kind, queue, state, before, limit, own = [] } = page;
  const where = (table, id, stateText) => {
    const column = (name) => sql23.raw(`${table}.${name}`);
    const conditions = [
      before === void 0 ? void 0 : sql23`${column(id)} < ${before}`,
      queue === void 0 ? void 0 : sql23`${column("queue")} = ${queue}`,
      kind === void 0 ? void 0 : sql23`${column("kind")} = ${kind}`,
      state === void 0 ? void 0 : sql23`${stateText} = ${state}`,
      ...own.map((wanted) => is6(column(wanted.column.name), wanted))
    ].filter((condition) => condition !== void 0);
    const all = conditions.length === 0 ? sql23`true` : sql23.join(conditions, sql23` and `);
    return sql23`${all} order by ${column(id)} desc limit ${limit}`;
  };
  const halves = [
    state === void 0 || isLive(state) ? sql23`(${liveRecords(tables2, where("j", "id", liveState))})` : void 0,
    state === void 0 || !isLive(state) ? sql23`(${resultRecords(tables2, where("r", "job_id", sql23.raw("r.state")))})` : void 0
  ].filter((half) => half !== void 0);
  return sql23`
    select * from (
      ${sql23.join(halves, sql23` union all `)}
    ) as record
    order by id desc limit ${limit}`;
}
function is6(column, { column: own, text: text5 }) {
  return text5 === null ? sql23`${column} is null` : sql23`${column} = ${ownValue(own, sql23`${text5}::text`)}`;
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
  scheduled: true,
  due: true,
  running: true,
  waiting: true,
  completed: true,
  discarded: true,
  cancelled: true
};
function checkState(state) {
  if (typeof state === "string" && Object.hasOwn(STATES, state)) return state;
  throw new TypeError(`list: state must be one of ${Object.keys(STATES).join(", ")}; got ${shown(state)}`);
}

// src/queue/redrive.ts
init_is_citus();

// src/queries/redrive-jobs.ts
import { sql as sql25 } from "drizzle-orm";
init_executor();
async function redriveJobs(db, tables2, redrive2, wakeUp) {
  const [row] = await queryRows(db, tables2, redriveJobsQuery(tables2, redrive2, wakeUp));
  const redriven = Number(row?.redriven);
  return { redriven, duplicates: Number(row?.discarded) - redriven };
}
function redriveJobsQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, redrive2, wakeUp) {
  const own = ownColumnsOf(queueJobs2);
  const { queue, limit } = redrive2;
  return sql25`
    with discarded as materialized (
      select r.* from ${queueResults2} as r
      where ${isDiscarded(redrive2)}
      order by r.job_id limit ${limit ?? null}::int8
      for no key update skip locked
    ),
    redriven as (
      insert into ${queueJobs2} (id, queue, kind, payload, priority, run_at, attempt, max_attempts,
        weight, fence, batch_id, unique_key, group_key, errors, metadata,
        created_at${ownNames(own)}) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, statement_timestamp(), 0, d.max_attempts,
        d.weight, d.fence, d.batch_id, d.unique_key, d.group_key, d.errors, d.metadata,
        d.created_at${ownNames(own, "d.")}
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue
    ),
    removed as (
      delete from ${queueResults2} as r
      where ${queue === void 0 ? sql25`` : sql25`r.queue = ${queue} and `}(r.job_id, r.queue) in (
        select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven,
      (select count(*) from discarded)::float8 as discarded${wakeUp === void 0 ? sql25`` : sql25`,
      (
        select count(${notified(wakeUp.channel, sql25`d.queue`)})
        from (select distinct queue from redriven) as d
      )::float8 as woken`}`;
}
function isDiscarded({ id, kind, queue, finishedAfter, finishedBefore }) {
  const conditions = [
    sql25`r.state = 'discarded'`,
    id === void 0 ? void 0 : sql25`r.job_id = ${id}`,
    kind === void 0 ? void 0 : sql25`r.kind = ${kind}`,
    queue === void 0 ? void 0 : sql25`r.queue = ${queue}`,
    finishedAfter === void 0 ? void 0 : sql25`r.finished_at >= ${finishedAfter.toISOString()}::timestamptz`,
    finishedBefore === void 0 ? void 0 : sql25`r.finished_at < ${finishedBefore.toISOString()}::timestamptz`
  ].filter((condition) => condition !== void 0);
  return sql25.join(conditions, sql25` and `);
}
async function redriveQueueByQueue(db, tables2, redrive2, wakeUp) {
  const result = { redriven: 0, duplicates: 0 };
  for (const { queue, jobs } of await queryRows(db, tables2, findDiscardedQuery(tables2, redrive2))) {
    const ofQueue = { ...redrive2, queue: String(queue), limit: Number(jobs) };
    const { redriven, duplicates } = await redriveJobs(db, tables2, ofQueue, wakeUp);
    result.redriven += redriven;
    result.duplicates += duplicates;
  }
  return result;
}
function findDiscardedQuery({ queueResults: queueResults2 }, redrive2) {
  return sql25`
    select d.queue, count(*)::float8 as jobs from (
      select r.queue from ${queueResults2} as r
      where ${isDiscarded(redrive2)}
      order by r.job_id limit ${redrive2.limit ?? null}::int8
    ) as d group by d.queue order by d.queue`;
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
  /** When each queue's bucket is full again, by `now`; it is empty when that is `BURST` intervals away. */
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
  const everywhere = filter.queue === void 0 && await isCitus(db, tables2);
  const redriveJobs2 = everywhere ? redriveQueueByQueue : redriveJobs;
  if (wakeUps === void 0) return await redriveJobs2(db, tables2, filter);
  const key = typeof which === "number" ? ANY_QUEUE : which.queue ?? ANY_QUEUE;
  const { redriven, duplicates } = await wakeUps.allow(db, [key], async (wakeUp) => {
    const answer2 = await redriveJobs2(db, tables2, filter, wakeUp);
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
  constructor(tables2, options = {}) {
    this.tables = tables2;
    const { wakeUps = true, maxPayloadBytes = DEFAULT_MAX_PAYLOAD_BYTES, around, schedules } = options;
    checkSameOwnColumns(tables2.queueJobs, tables2.queueResults);
    this.around = around;
    this.#wakeUps = wakeUps ? new WakeUps(wakeChannel(tables2)) : void 0;
    const own = ownColumnsOf(tables2.queueJobs);
    this.#settings = { tables: tables2, own, wakeUps: this.#wakeUps, maxPayloadBytes, around: around?.enqueue };
    this.#schedules = schedules?.({
      tables: tables2,
      channel: this.#wakeUps?.channel,
      maxPayloadBytes,
      enqueue: (db, job, payload) => insertOneAround(db, this.#settings, job, payload)
    });
    this.schedules = this.#schedules;
  }
  #wakeUps;
  #settings;
  #schedules;
  /** The queue's schedules; `undefined` unless {@link createQueue} was given `schedulesIn(…)`. */
  schedules;
  /** As {@link createQueue} was given it. */
  around;
  /**
   * Enqueues one job. In a transaction, it exists if and only if that commits, and no worker sees it earlier.
   *
   * Under concurrency: see `uniqueKey`. With a key it waits for another open transaction that has just
   * enqueued the same key, since only its end decides which of the two is the duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent; a TypeError also for a
   * payload of a definition that has none
   * @throws MissingMigrationError when the tables are missing
   */
  async enqueue(db, job, ...[payload, options]) {
    checkDefinition("enqueue", job);
    const { own, maxPayloadBytes } = this.#settings;
    const made = await newJob(job, payload, options, maxPayloadBytes);
    return await insertOneAround(db, this.#settings, withOwn(own, made, options), payload);
  }
  /**
   * The query that enqueues one job, not yet sent: for drivers whose only transaction is a batch of queries,
   * such as Neon's over HTTP.
   *
   * ```ts
   * await db.batch([db.insert(orders).values(order), queue.enqueueQuery(db, sendReceipt, payload)]);
   * ```
   *
   * Under concurrency: as {@link enqueue}, but one statement cannot always return the id of a duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError at once, also for an asynchronous schema
   */
  enqueueQuery(db, job, ...[payload, options]) {
    checkDefinition("enqueueQuery", job);
    return enqueueQuery(db, this.#settings, job, payload, options);
  }
  /**
   * Enqueues any number of jobs of one kind in one statement; returns the results in input order. A key that
   * repeats in the input is a duplicate of its first use. If one entry is invalid, none is sent.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   */
  async enqueueMany(db, job, entries) {
    checkDefinition("enqueueMany", job);
    if (!Array.isArray(entries)) throw new TypeError(`enqueueMany takes an array; got ${shown(entries)}`);
    const { own, maxPayloadBytes } = this.#settings;
    const jobs = [];
    for (const entry of entries) {
      if (typeof entry !== "object" || entry === null)
        checkObject2(`enqueueMany('${job.kind}'): an entry`, entry);
      const made = newJob(job, entry.payload, entry, maxPayloadBytes);
      jobs.push(withOwn(own, "then" in made ? await made : made, entry));
    }
    return await insertAround(db, this.#settings, jobs, entries);
  }
  /**
   * Enqueues one job per row of a Drizzle select by one `INSERT … SELECT`. A row becomes the payload, with
   * the select's own keys, as Postgres writes it in JSON. Rows are not measured, only validated once claimed.
   *
   * ```ts
   * const due = tx.select({ userId: users.id }).from(users).where(lt(users.trialEndsAt, sql`now()`));
   * await queue.enqueueFrom(tx, remindUser, due, { uniqueKey: (row) => sql`${row.userId}::text` });
   * ```
   */
  async enqueueFrom(db, job, select, ...[options]) {
    checkDefinition("enqueueFrom", job);
    return await enqueueFrom(db, this.#settings, job, select, options);
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
   * Ends a waiting job (scheduled or due). A running one gets a request: within a second its handler's signal
   * is aborted with a `JobCancelledError`, in whichever process it runs. Unless the attempt then completes,
   * the job ends as cancelled; it never runs again. With `force` a running job ends at once: its handler's
   * signal is aborted too, and the handler has no further effect on the job. The result says which.
   *
   * Under concurrency: against a claim or the end of an attempt, exactly one of the two wins. A handler that
   * completes its job anyway, by returning or by a committed `complete(tx)`, has completed it.
   */
  async cancel(db, id, reasonOrOptions = {}) {
    const options = typeof reasonOrOptions === "string" ? { reason: reasonOrOptions } : reasonOrOptions;
    return await cancel2(db, this.tables, id, options, this.#wakeUps?.channel);
  }
  /**
   * Pauses a queue until {@link resume}, across restarts. Within a second workers begin no more of its jobs
   * and give back what they claimed ahead; `drain` and `runNext` begin none either. Running jobs and
   * enqueueing go on. Takes effect at the commit. Returns `false` when it was paused already.
   */
  async pause(db, queue) {
    checkText2("pause: queue", queue, MAX_NAME_BYTES);
    return await pauseQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }
  /** Ends a queue's pause; workers learn of it within a second. Returns `false` when it was not paused. */
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
  /** What is wrong with the database's set-up and what to do about it, errors first; empty if nothing is. */
  async check(db) {
    const { checkQueue: checkQueue2 } = await Promise.resolve().then(() => (init_check_queue(), check_queue_exports));
    return await checkQueue2(db, this.tables, this.#schedules);
  }
};

// src/queue/create-queue.ts
function createQueue(options = {}) {
  checkQueueOptions(options);
  return new Queue(options.tables ?? { queueJobs, queueResults, queueWorkers, queuePauses }, options);
}

// src/schedules/catch-up.ts
var CATCH_UPS = ["latest", "all", "none"];
var MOST_TICKS = 1e3;
var LATE_MS = 6e4;
function ticksToFire(ticks, catchUp, afterMs, nowMs) {
  if (catchUp === "all") return ticks.newest(MOST_TICKS, afterMs, nowMs);
  const newest2 = ticks.newest(1, afterMs, nowMs);
  return catchUp === "latest" ? newest2 : newest2.filter((tick) => nowMs - tick < LATE_MS);
}

// node_modules/croner/dist/croner.js
function g(s3, e, t, n = 0, r = 0, a = 0, i = 0) {
  let o = s3 >= 0 && s3 < 100, u = Date.UTC(o ? s3 + 400 : s3, e, t, n, r, a, i);
  return o ? u - 126227808e5 : u;
}
function D(s3) {
  return g(s3.y, s3.m - 1, s3.d, s3.h, s3.i, s3.s);
}
function w(s3, e) {
  return s3.y === e.y && s3.m === e.m && s3.d === e.d && s3.h === e.h && s3.i === e.i && s3.s === e.s;
}
function O(s3) {
  let e = s3.substring(9);
  return e.includes("Z") || e.includes("+") || e.includes("-");
}
function Z(s3, e) {
  let t = new Date(Date.parse(s3));
  if (isNaN(t)) throw new Error("Invalid ISO8601 passed to timezone parser.");
  return O(s3) ? { tp: T(t.getUTCFullYear(), t.getUTCMonth() + 1, t.getUTCDate(), t.getUTCHours(), t.getUTCMinutes(), t.getUTCSeconds(), "Etc/UTC"), ms: t.getUTCMilliseconds() } : { tp: T(t.getFullYear(), t.getMonth() + 1, t.getDate(), t.getHours(), t.getMinutes(), t.getSeconds(), e), ms: t.getMilliseconds() };
}
function v(s3, e, t) {
  let { tp: n, ms: r } = Z(s3, e);
  return new Date(N(n, t).getTime() + r);
}
function N(s3, e) {
  let t = _(s3);
  if (t.kind === "single") return t.date;
  if (t.kind === "ambiguous") return t.earlier;
  if (e) throw new Error("Invalid date passed to fromTZ()");
  return t.after;
}
function _(s3) {
  let e = D(s3), t = (i) => R(new Date(i), s3.tz), n = e - t(e), r = y(new Date(n), s3.tz);
  if (w(r, s3)) {
    let i = D(r) - n, o = n - (t(n - E) - i);
    if (o < n && w(y(new Date(o), s3.tz), s3)) return { kind: "ambiguous", earlier: new Date(o), later: new Date(n) };
    let u = n + (i - t(n + E));
    return u > n && w(y(new Date(u), s3.tz), s3) ? { kind: "ambiguous", earlier: new Date(n), later: new Date(u) } : { kind: "single", date: new Date(n) };
  }
  let a = e - (D(r) - n);
  return w(y(new Date(a), s3.tz), s3) ? { kind: "single", date: new Date(a) } : { kind: "gap", before: new Date(Math.min(n, a)), after: new Date(Math.max(n, a)) };
}
var E = 3 * 36e5;
function R(s3, e) {
  return D(y(s3, e)) - (s3.getTime() - s3.getUTCMilliseconds());
}
function k(s3, e, t) {
  let n = R(new Date(s3), t);
  for (; e - s3 > 1e3; ) {
    let r = s3 + Math.floor((e - s3) / 2e3) * 1e3;
    R(new Date(r), t) === n ? s3 = r : e = r;
  }
  return e;
}
function U(s3, e) {
  let t = _(y(new Date(s3), e));
  if (t.kind === "ambiguous") return s3 < t.later.getTime() ? "earlier" : "later";
}
var H = g(1, 0, 1);
var S = 864e5;
var W = /* @__PURE__ */ new Map();
function y(s3, e) {
  if (e === void 0) return T(s3.getFullYear(), s3.getMonth() + 1, s3.getDate(), s3.getHours(), s3.getMinutes(), s3.getSeconds());
  let t = W.get(e), n;
  try {
    t || (t = new Intl.DateTimeFormat("en-US", { timeZone: e, year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric", hour12: false }), W.set(e, t)), n = t.formatToParts(s3);
  } catch (i) {
    let o = i instanceof Error ? i.message : String(i);
    throw new RangeError(`toTZ: Invalid timezone '${e}' or date. Please provide a valid IANA timezone (e.g., 'America/New_York', 'Europe/Stockholm'). Original error: ${o}`);
  }
  let r = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
  for (let i of n) (i.type === "year" || i.type === "month" || i.type === "day" || i.type === "hour" || i.type === "minute" || i.type === "second") && (r[i.type] = parseInt(i.value, 10));
  if (isNaN(r.year) || isNaN(r.month) || isNaN(r.day) || isNaN(r.hour) || isNaN(r.minute) || isNaN(r.second)) throw new Error(`toTZ: Failed to parse all date components from timezone '${e}'. This may indicate an invalid date or timezone configuration. Parsed components: ${JSON.stringify(r)}`);
  let a = s3.getTime() - H;
  return (a < -S || a < S && r.month === 12) && (r.year = 1 - r.year), r.hour === 24 && (r.hour = 0), { y: r.year, m: r.month, d: r.day, h: r.hour, i: r.minute, s: r.second, tz: e };
}
function T(s3, e, t, n, r, a, i) {
  return { y: s3, m: e, d: t, h: n, i: r, s: a, tz: i };
}
var x = [1, 2, 4, 8, 16];
var C = class s {
  pattern;
  timezone;
  mode;
  alternativeWeekdays;
  sloppyRanges;
  fixedTimeRule;
  second;
  minute;
  hour;
  day;
  month;
  dayOfWeek;
  year;
  lastDayOfMonth;
  lastWeekday;
  nearestWeekdays;
  starDOM;
  starDOW;
  starYear;
  useAndLogic;
  isFixedTime;
  constructor(e, t, n) {
    this.pattern = e, this.timezone = t, this.mode = n?.mode ?? "auto", this.alternativeWeekdays = n?.alternativeWeekdays ?? false, this.sloppyRanges = n?.sloppyRanges ?? false, this.fixedTimeRule = n?.fixedTimeRule ?? "single-value", this.second = Array(60).fill(0), this.minute = Array(60).fill(0), this.hour = Array(24).fill(0), this.day = Array(31).fill(0), this.month = Array(12).fill(0), this.dayOfWeek = Array(7).fill(0), this.year = [], this.lastDayOfMonth = false, this.lastWeekday = false, this.nearestWeekdays = Array(31).fill(0), this.starDOM = false, this.starDOW = false, this.starYear = false, this.useAndLogic = false, this.isFixedTime = false, this.parse();
  }
  parse() {
    if (!(typeof this.pattern == "string" || this.pattern instanceof String)) throw new TypeError("CronPattern: Pattern has to be of type string.");
    this.pattern.indexOf("@") >= 0 && (this.pattern = this.handleNicknames(this.pattern).trim());
    let e = this.pattern.match(/\S+/g) || [""], t = e.length;
    if (e.length < 5 || e.length > 7) throw new TypeError("CronPattern: invalid configuration format ('" + this.pattern + "'), exactly five, six, or seven space separated parts are required.");
    if (this.mode !== "auto") {
      let i;
      switch (this.mode) {
        case "5-part":
          i = 5;
          break;
        case "6-part":
          i = 6;
          break;
        case "7-part":
          i = 7;
          break;
        case "5-or-6-parts":
          i = [5, 6];
          break;
        case "6-or-7-parts":
          i = [6, 7];
          break;
        default:
          i = 0;
      }
      if (!(Array.isArray(i) ? i.includes(t) : t === i)) {
        let u = Array.isArray(i) ? i.join(" or ") : i.toString();
        throw new TypeError(`CronPattern: mode '${this.mode}' requires exactly ${u} parts, but pattern '${this.pattern}' has ${t} parts.`);
      }
    }
    if (e.length === 5 && e.unshift("0"), e.length === 6 && e.push("*"), this.pattern.indexOf("?") >= 0) for (let i = 0; i < e.length; i++) e[i] = e[i].replace(/\?/g, "*");
    if (e[3].toUpperCase() === "LW") this.lastWeekday = true, e[3] = "";
    else if (e[3].toUpperCase().indexOf("L") >= 0) {
      let i = e[3].split(",");
      if (i.length > 1 && i.some((o) => o.toUpperCase() === "LW")) throw new TypeError(`CronPattern: Syntax error, LW can not be in a list in day-of-month ('${e[3]}').`);
      if (i.some((o) => o === "" || o.toUpperCase() !== "L" && /l/i.test(o))) throw new TypeError("CronPattern: Syntax error, L has to be a value of its own in day-of-month ('" + e[3] + "').");
      e[3] = i.filter((o) => o.toUpperCase() !== "L").join(","), this.lastDayOfMonth = true;
    }
    if (e[3] == "*" && (this.starDOM = true), e[6] == "*" && (this.starYear = true), e[4].length >= 3 && (e[4] = this.replaceAlpha(e[4], s.MONTH_NAMES)), e[5].length >= 3 && (e[5] = this.alternativeWeekdays ? this.replaceAlpha(e[5], s.DAY_NAMES_QUARTZ) : this.replaceAlpha(e[5], s.DAY_NAMES)), e[5].startsWith("+") && (this.useAndLogic = true, e[5] = e[5].substring(1), e[5] === "")) throw new TypeError("CronPattern: Day-of-week field cannot be empty after '+' modifier.");
    switch (e[5] == "*" && (this.starDOW = true), this.mode) {
      case "5-part":
        e[0] = "0", e[6] = "*";
        break;
      case "6-part":
        e[6] = "*";
        break;
      case "5-or-6-parts":
        e[6] = "*";
        break;
      case "6-or-7-parts":
        break;
      case "7-part":
      case "auto":
        break;
    }
    this.throwAtIllegalCharacters(e), this.partToArray("second", e[0], 0, 1), this.partToArray("minute", e[1], 0, 1), this.partToArray("hour", e[2], 0, 1), this.partToArray("day", e[3], -1, 1), this.partToArray("month", e[4], -1, 1);
    let n = this.alternativeWeekdays ? -1 : 0;
    this.partToArray("dayOfWeek", e[5], n, 63), e[6] === "*" ? this.year = Array(1e4).fill(1) : (this.year = Array(1e4).fill(0), this.partToArray("year", e[6], 0, 1)), !this.alternativeWeekdays && this.dayOfWeek[7] && (this.dayOfWeek[0] = this.dayOfWeek[7]);
    let r = this.fixedTimeRule === "single-value", a = (i, o) => !i.includes("*") && !i.includes("/") && (!r || o.filter((u) => u).length === 1);
    this.isFixedTime = a(e[0], this.second) && a(e[1], this.minute) && a(e[2], this.hour);
  }
  partToArray(e, t, n, r) {
    let a = this[e];
    if (t === "" && !(e === "day" && (this.lastDayOfMonth || this.lastWeekday))) throw new TypeError("CronPattern: configuration entry " + e + " (" + t + ") is empty, check for trailing spaces.");
    if (t === "*") return a.fill(r);
    let i = t.split(",");
    if (i.length > 1) for (let o of i) this.partToArray(e, o, n, r);
    else t.includes("-") && t.includes("/") ? this.handleRangeWithStepping(t, e, n, r) : t.includes("-") ? this.handleRange(t, e, n, r) : t.includes("/") ? this.handleStepping(t, e, n, r) : t !== "" && this.handleNumber(t, e, n, r);
  }
  throwAtIllegalCharacters(e) {
    for (let t = 0; t < e.length; t++) if ((t === 3 ? /[^/*0-9,\-WwLl]+/ : t === 5 ? /[^/*0-9,\-#Ll]+/ : /[^/*0-9,\-]+/).test(e[t])) throw new TypeError("CronPattern: configuration entry " + t + " (" + e[t] + ") contains illegal characters.");
  }
  handleNumber(e, t, n, r) {
    let a = this.extractNth(e, t), i = e.toUpperCase().includes("W");
    if (t !== "day" && i) throw new TypeError("CronPattern: Nearest weekday modifier (W) only allowed in day-of-month.");
    i && (t = "nearestWeekdays");
    let o = i ? a[0].replace(/W$/i, "") : a[0], u = s.toNumber(o) + n;
    if (isNaN(u)) throw new TypeError("CronPattern: " + t + " is not a number: '" + e + "'");
    this.setPart(t, u, a[1] || r);
  }
  setPart(e, t, n) {
    if (!Object.prototype.hasOwnProperty.call(this, e)) throw new TypeError("CronPattern: Invalid part specified: " + e);
    if (e === "dayOfWeek") {
      if (t === 7 && (t = 0), t < 0 || t > 6) throw new RangeError("CronPattern: Invalid value for dayOfWeek: " + t);
      this.setNthWeekdayOfMonth(t, n);
      return;
    }
    if (e === "second" || e === "minute") {
      if (t < 0 || t >= 60) throw new RangeError("CronPattern: Invalid value for " + e + ": " + t);
    } else if (e === "hour") {
      if (t < 0 || t >= 24) throw new RangeError("CronPattern: Invalid value for " + e + ": " + t);
    } else if (e === "day" || e === "nearestWeekdays") {
      if (t < 0 || t >= 31) throw new RangeError("CronPattern: Invalid value for " + e + ": " + t);
    } else if (e === "month") {
      if (t < 0 || t >= 12) throw new RangeError("CronPattern: Invalid value for " + e + ": " + t);
    } else if (e === "year" && (t < 1 || t >= 1e4)) throw new RangeError("CronPattern: Invalid value for " + e + ": " + t + " (supported range: 1-9999)");
    this[e][t] = n;
  }
  static toNumber(e) {
    return /^\d+$/.test(e) ? parseInt(e, 10) : NaN;
  }
  validateNotNaN(e, t) {
    if (isNaN(e)) throw new TypeError(t);
  }
  validateRange(e, t, n, r, a) {
    if (e > t) throw new TypeError("CronPattern: From value is larger than to value: '" + a + "'");
    if (n !== void 0) {
      if (n === 0) throw new TypeError("CronPattern: Syntax error, illegal stepping: 0");
      if (n > this[r].length) throw new TypeError("CronPattern: Syntax error, steps cannot be greater than maximum value of part (" + this[r].length + ")");
    }
  }
  handleRangeWithStepping(e, t, n, r) {
    if (e.toUpperCase().includes("W")) throw new TypeError("CronPattern: Syntax error, W is not allowed in ranges with stepping.");
    let a = this.extractNth(e, t), i = a[0].match(/^(\d+)-(\d+)\/(\d+)$/);
    if (i === null) throw new TypeError("CronPattern: Syntax error, illegal range with stepping: '" + e + "'");
    let [, o, u, l] = i, h = parseInt(o, 10) + n, m = parseInt(u, 10) + n, d = parseInt(l, 10);
    this.validateNotNaN(h, "CronPattern: Syntax error, illegal lower range (NaN)"), this.validateNotNaN(m, "CronPattern: Syntax error, illegal upper range (NaN)"), this.validateNotNaN(d, "CronPattern: Syntax error, illegal stepping: (NaN)"), this.validateRange(h, m, d, t, e);
    for (let p = h; p <= m; p += d) this.setPart(t, p, a[1] || r);
  }
  extractNth(e, t) {
    let n = e, r;
    if (n.includes("#")) {
      if (t !== "dayOfWeek") throw new Error("CronPattern: nth (#) only allowed in day-of-week field");
      let a = n.split("#");
      if (a.length !== 2 || a[1] === "") throw new TypeError("CronPattern: Syntax error, illegal nth weekday: '" + e + "'");
      n = a[0], r = a[1];
    } else if (n.toUpperCase().endsWith("L")) {
      if (t !== "dayOfWeek") throw new Error("CronPattern: L modifier only allowed in day-of-week field (use L alone for day-of-month)");
      r = "L", n = n.slice(0, -1);
    }
    return [n, r];
  }
  handleRange(e, t, n, r) {
    if (e.toUpperCase().includes("W")) throw new TypeError("CronPattern: Syntax error, W is not allowed in a range.");
    let a = this.extractNth(e, t), i = a[0].split("-");
    if (i.length !== 2) throw new TypeError("CronPattern: Syntax error, illegal range: '" + e + "'");
    let o = s.toNumber(i[0]) + n, u = s.toNumber(i[1]) + n;
    this.validateNotNaN(o, "CronPattern: Syntax error, illegal lower range (NaN)"), this.validateNotNaN(u, "CronPattern: Syntax error, illegal upper range (NaN)"), this.validateRange(o, u, void 0, t, e);
    for (let l = o; l <= u; l++) this.setPart(t, l, a[1] || r);
  }
  handleStepping(e, t, n, r) {
    if (e.toUpperCase().includes("W")) throw new TypeError("CronPattern: Syntax error, W is not allowed in parts with stepping.");
    let a = this.extractNth(e, t), i = a[0].split("/");
    if (i.length !== 2) throw new TypeError("CronPattern: Syntax error, illegal stepping: '" + e + "'");
    if (this.sloppyRanges) i[0] === "" && (i[0] = "*");
    else {
      if (i[0] === "") throw new TypeError("CronPattern: Syntax error, stepping with missing prefix ('" + e + "') is not allowed. Use wildcard (*/step) or range (min-max/step) instead.");
      if (i[0] !== "*") throw new TypeError("CronPattern: Syntax error, stepping with numeric prefix ('" + e + "') is not allowed. Use wildcard (*/step) or range (min-max/step) instead.");
    }
    let o = 0;
    i[0] !== "*" && (o = s.toNumber(i[0]) + n, this.validateNotNaN(o, "CronPattern: Syntax error, illegal stepping start (NaN)"));
    let u = s.toNumber(i[1]);
    this.validateNotNaN(u, "CronPattern: Syntax error, illegal stepping: (NaN)"), this.validateRange(0, this[t].length - 1, u, t, e);
    for (let l = o; l < this[t].length; l += u) t === "year" && l === 0 || this.setPart(t, l, a[1] || r);
  }
  replaceAlpha(e, t) {
    let n = e;
    for (let [r, a] of Object.entries(t)) n = n.replace(new RegExp(r, "gi"), (i, o, u) => {
      let l = o + i.length - 3, h = u.charAt(l - 1), m = u.charAt(l + 3);
      if (/[a-z\d/#]/i.test(h) || /[a-km-z\d]/i.test(m)) throw new TypeError(`CronPattern: Syntax error, a month or day name has to stand alone ('${e}').`);
      return a;
    });
    return n;
  }
  static DAY_NAMES = { "-sun": "-7", sun: "0", mon: "1", tue: "2", wed: "3", thu: "4", fri: "5", sat: "6" };
  static DAY_NAMES_QUARTZ = { sun: "1", mon: "2", tue: "3", wed: "4", thu: "5", fri: "6", sat: "7" };
  static MONTH_NAMES = { jan: "1", feb: "2", mar: "3", apr: "4", may: "5", jun: "6", jul: "7", aug: "8", sep: "9", oct: "10", nov: "11", dec: "12" };
  static NICKNAME_MAP = { "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * SUN", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *" };
  handleNicknames(e) {
    let t = e.trim().toLowerCase();
    if (t === "@reboot") throw new TypeError("CronPattern: @reboot is not supported in this environment. This is an event-based trigger that requires system startup detection.");
    return s.NICKNAME_MAP[t] || e;
  }
  setNthWeekdayOfMonth(e, t) {
    if (typeof t != "number" && t.toUpperCase() === "L") this.dayOfWeek[e] = this.dayOfWeek[e] | 32;
    else if (t === 63) this.dayOfWeek[e] = 63;
    else if (t < 6 && t > 0) this.dayOfWeek[e] = this.dayOfWeek[e] | x[t - 1];
    else throw new TypeError(`CronPattern: nth weekday out of range, should be 1-5 or L. Value: ${t}, Type: ${typeof t}`);
  }
};
var B = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
var f = [["month", "year", 0], ["day", "month", -1], ["hour", "day", 0], ["minute", "hour", 0], ["second", "minute", 0]];
var c = class s2 {
  tz;
  instantMs;
  instantFields;
  ms;
  second;
  minute;
  hour;
  day;
  month;
  year;
  constructor(e, t) {
    if (this.tz = t, e && e instanceof Date) if (!isNaN(e)) this.fromDate(e);
    else throw new TypeError("CronDate: Invalid date passed to CronDate constructor");
    else if (e == null) this.fromDate(/* @__PURE__ */ new Date());
    else if (e && typeof e == "string") this.fromString(e);
    else if (e instanceof s2) this.fromCronDate(e);
    else throw new TypeError("CronDate: Invalid type (" + typeof e + ") passed to CronDate constructor");
  }
  getLastDayOfMonth(e, t) {
    return t !== 1 ? B[t] : new Date(g(e, t + 1, 0)).getUTCDate();
  }
  getLastWeekday(e, t) {
    let n = this.getLastDayOfMonth(e, t), a = new Date(g(e, t, n)).getUTCDay();
    return a === 0 ? n - 2 : a === 6 ? n - 1 : n;
  }
  getNearestWeekday(e, t, n) {
    let r = this.getLastDayOfMonth(e, t);
    if (n > r) return -1;
    let i = new Date(g(e, t, n)).getUTCDay();
    return i === 0 ? n === r ? n - 2 : n + 1 : i === 6 ? n === 1 ? n + 2 : n - 1 : n;
  }
  isNthWeekdayOfMonth(e, t, n, r) {
    let i = new Date(g(e, t, n)).getUTCDay(), o = 0;
    for (let u = 1; u <= n; u++) new Date(g(e, t, u)).getUTCDay() === i && o++;
    if (r & 63 && x[o - 1] & r) return true;
    if (r & 32) {
      let u = this.getLastDayOfMonth(e, t);
      for (let l = n + 1; l <= u; l++) if (new Date(g(e, t, l)).getUTCDay() === i) return false;
      return true;
    }
    return false;
  }
  fromDate(e) {
    if (this.tz !== void 0) if (typeof this.tz == "number") this.ms = e.getUTCMilliseconds(), this.second = e.getUTCSeconds(), this.minute = e.getUTCMinutes() + this.tz, this.hour = e.getUTCHours(), this.day = e.getUTCDate(), this.month = e.getUTCMonth(), this.year = e.getUTCFullYear(), this.apply();
    else try {
      let t = y(e, this.tz);
      this.ms = e.getMilliseconds(), this.second = t.s, this.minute = t.i, this.hour = t.h, this.day = t.d, this.month = t.m - 1, this.year = t.y, this.cacheInstant(e.getTime() - this.ms);
    } catch (t) {
      let n = t instanceof Error ? t.message : String(t);
      throw new TypeError(`CronDate: Failed to convert date to timezone '${this.tz}'. This may happen with invalid timezone names or dates. Original error: ${n}`);
    }
    else this.ms = e.getMilliseconds(), this.second = e.getSeconds(), this.minute = e.getMinutes(), this.hour = e.getHours(), this.day = e.getDate(), this.month = e.getMonth(), this.year = e.getFullYear(), this.cacheInstant(e.getTime() - this.ms);
  }
  cacheInstant(e) {
    this.instantMs = e;
    let { year: t, month: n, day: r, hour: a, minute: i, second: o } = this;
    this.instantFields = [t, n, r, a, i, o, this.tz];
  }
  cachedInstant() {
    let e = this.instantFields;
    if (!(e === void 0 || e[6] !== this.tz) && !(e[5] !== this.second || e[4] !== this.minute || e[3] !== this.hour) && !(e[2] !== this.day || e[1] !== this.month || e[0] !== this.year)) return this.instantMs;
  }
  fromCronDate(e) {
    this.tz = e.tz, this.year = e.year, this.month = e.month, this.day = e.day, this.hour = e.hour, this.minute = e.minute, this.second = e.second, this.ms = e.ms, this.instantMs = e.instantMs, this.instantFields = e.instantFields;
  }
  apply() {
    if (this.month > 11 || this.month < 0 || this.day > this.getLastDayOfMonth(this.year, this.month) || this.day < 1 || this.hour > 23 || this.minute > 59 || this.second > 59 || this.hour < 0 || this.minute < 0 || this.second < 0) {
      let e = /* @__PURE__ */ new Date(0);
      return e.setUTCFullYear(this.year, this.month, this.day), e.setUTCHours(this.hour, this.minute, this.second, this.ms), this.ms = e.getUTCMilliseconds(), this.second = e.getUTCSeconds(), this.minute = e.getUTCMinutes(), this.hour = e.getUTCHours(), this.day = e.getUTCDate(), this.month = e.getUTCMonth(), this.year = e.getUTCFullYear(), true;
    } else return false;
  }
  fromString(e) {
    if (typeof this.tz == "number") {
      if (O(e)) return this.fromDate(v(e));
      let t = v(e, "Etc/UTC");
      this.ms = t.getUTCMilliseconds(), this.second = t.getUTCSeconds(), this.minute = t.getUTCMinutes(), this.hour = t.getUTCHours(), this.day = t.getUTCDate(), this.month = t.getUTCMonth(), this.year = t.getUTCFullYear(), this.apply();
    } else return this.fromDate(v(e, this.tz));
  }
  findNext(e, t, n, r) {
    return this._findMatch(e, t, n, r, 1);
  }
  _matchDayValue(e, t, n, r) {
    let a = e;
    if (!a) {
      for (let i = 0; i < n.nearestWeekdays.length; i++) if (n.nearestWeekdays[i]) {
        let o = this.getNearestWeekday(this.year, this.month, i + 1);
        if (o !== -1 && o === t) {
          a = 1;
          break;
        }
      }
    }
    if (n.lastWeekday) {
      let i = this.getLastWeekday(this.year, this.month);
      t === i && (a = 1);
    }
    if (n.lastDayOfMonth) {
      let i = this.getLastDayOfMonth(this.year, this.month);
      t === i && (a = 1);
    }
    if (!n.starDOW) {
      let i = new Date(g(this.year, this.month, 1, 0, 0, 0, 0)).getUTCDay(), o = n.dayOfWeek[(i + (t - 1)) % 7];
      o && o & 63 && (o = this.isNthWeekdayOfMonth(this.year, this.month, t, o) ? 1 : 0), n.useAndLogic ? a = a && o : !r.domAndDow && !n.starDOM ? a = a || o : a = a && o;
    }
    return a;
  }
  _findMatch(e, t, n, r, a) {
    let i = this[t], o = t === "day" ? this.getLastDayOfMonth(this.year, this.month) : 0, u = this[t] + r, l = a === 1 ? (h) => h < n[t].length : (h) => h >= 0;
    for (let h = u; l(h); h += a) {
      let m = n[t][h];
      if (t === "day") {
        if (h - r > o) continue;
        m = this._matchDayValue(m, h - r, n, e);
      }
      if (m) return this[t] = h - r, i !== this[t] ? 2 : 1;
    }
    return 3;
  }
  recurse(e, t, n) {
    let r = this.year, a = n;
    for (; typeof a == "number"; ) {
      if (e.starYear && Math.abs(this.year - r) > 400) return null;
      a = this.recurseStep(e, t, a);
    }
    return a;
  }
  recurseStep(e, t, n) {
    if (n === 0 && !e.starYear) {
      if (this.year >= 0 && this.year < e.year.length && e.year[this.year] === 0) {
        let a = -1;
        for (let i = this.year + 1; i < e.year.length && i < 1e4; i++) if (e.year[i] === 1) {
          a = i;
          break;
        }
        if (a === -1) return null;
        this.year = a, this.month = 0, this.day = 1, this.hour = 0, this.minute = 0, this.second = 0, this.ms = 0;
      }
      if (this.year >= 1e4) return null;
    }
    let r = this.findNext(t, f[n][0], e, f[n][2]);
    if (r > 1) {
      let a = n + 1;
      for (; a < f.length; ) this[f[a][0]] = -f[a][2], a++;
      if (r === 3) {
        if (this[f[n][1]]++, this[f[n][0]] = -f[n][2], this.apply(), n === 0 && !e.starYear) {
          for (; this.year >= 0 && this.year < e.year.length && e.year[this.year] === 0 && this.year < 1e4; ) this.year++;
          if (this.year >= 1e4 || this.year >= e.year.length) return null;
        }
        return 0;
      } else if (this.apply()) return n - 1;
    }
    return n += 1, n >= f.length ? this : (e.starYear ? this.year >= 3e3 : this.year >= 1e4) ? null : n;
  }
  increment(e, t, n) {
    return this.instantMs = void 0, this.instantFields = void 0, this.second += t.interval !== void 0 && t.interval > 1 && n ? t.interval : 1, this.ms = 0, this.apply(), this.recurse(e, t, 0);
  }
  decrement(e, t, n = true) {
    this.instantMs = void 0, this.instantFields = void 0;
    let r = t.interval !== void 0 && t.interval >= 1;
    return (this.ms === 0 || r) && (this.second -= r && n ? t.interval : 1), this.ms = 0, this.apply(), this.year < 1 ? null : this.recurseBackward(e, t, 0);
  }
  recurseBackward(e, t, n) {
    let r = this.year, a = n;
    for (; typeof a == "number"; ) {
      if (e.starYear && Math.abs(this.year - r) > 400) return null;
      a = this.recurseBackwardStep(e, t, a);
    }
    return a;
  }
  recurseBackwardStep(e, t, n) {
    if (n === 0 && !e.starYear) {
      if (this.year >= 0 && this.year < e.year.length && e.year[this.year] === 0) {
        let a = -1;
        for (let i = this.year - 1; i >= 0; i--) if (e.year[i] === 1) {
          a = i;
          break;
        }
        if (a === -1) return null;
        this.year = a, this.month = 11, this.day = 31, this.hour = 23, this.minute = 59, this.second = 59, this.ms = 0;
      }
      if (this.year < 1) return null;
    }
    let r = this.findPrevious(t, f[n][0], e, f[n][2]);
    if (r > 1) {
      let a = n + 1;
      for (; a < f.length; ) {
        let i = f[a][0], o = f[a][2], u = this.getMaxPatternValue(i, e, o);
        this[i] = u, a++;
      }
      if (r === 3) {
        if (this[f[n][1]]--, n === 0) {
          let u = this.getLastDayOfMonth(this.year, this.month);
          this.day > u && (this.day = u);
        }
        if (n === 1) if (this.day <= 0) this.day = 1;
        else {
          let u = this.year, l = this.month;
          for (; l < 0; ) l += 12, u--;
          for (; l > 11; ) l -= 12, u++;
          let h = this.getLastDayOfMonth(u, l);
          this.day > h && (this.day = h);
        }
        this.apply();
        let i = f[n][0], o = f[n][2];
        if (this[i] = this.getMaxPatternValue(i, e, o), this.apply(), n === 0) {
          let u = f[1][2], l = this.getMaxPatternValue("day", e, u);
          l !== this.day && (this.day = l, this.hour = this.getMaxPatternValue("hour", e, f[2][2]), this.minute = this.getMaxPatternValue("minute", e, f[3][2]), this.second = this.getMaxPatternValue("second", e, f[4][2]));
        }
        if (n === 0 && !e.starYear) {
          for (; this.year >= 0 && this.year < e.year.length && e.year[this.year] === 0; ) this.year--;
          if (this.year < 1) return null;
        }
        return 0;
      } else if (this.apply()) return n - 1;
    }
    return n += 1, n >= f.length ? this : this.year < 1 ? null : n;
  }
  getMaxPatternValue(e, t, n) {
    let r = t[e].length - 1 - n;
    for (let a = t[e].length - 1; a >= 0; a--) if (t[e][a]) {
      r = a - n;
      break;
    }
    if (e === "day") {
      let a = this.getLastDayOfMonth(this.year, this.month);
      return t.lastWeekday || t.nearestWeekdays.some((i) => i) || t.lastDayOfMonth || !t.starDOW ? a : Math.min(r, a);
    }
    return r;
  }
  findPrevious(e, t, n, r) {
    return this._findMatch(e, t, n, r, -1);
  }
  getDate(e) {
    if (!e && typeof this.tz != "number") {
      let t = this.cachedInstant();
      if (t !== void 0) return new Date(t + (this.tz === void 0 ? this.ms : 0));
    }
    if (e || this.tz === void 0) {
      if (this.year >= 0 && this.year < 100) {
        let t = /* @__PURE__ */ new Date(0);
        return t.setFullYear(this.year, this.month, this.day), t.setHours(this.hour, this.minute, this.second, this.ms), t;
      }
      return new Date(this.year, this.month, this.day, this.hour, this.minute, this.second, this.ms);
    } else return typeof this.tz == "number" ? new Date(g(this.year, this.month, this.day, this.hour, this.minute - this.tz, this.second, this.ms)) : N(T(this.year, this.month + 1, this.day, this.hour, this.minute, this.second, this.tz), false);
  }
  getTime() {
    return this.getDate(false).getTime();
  }
  match(e, t) {
    if (!e.starYear && (this.year < 0 || this.year >= e.year.length || e.year[this.year] === 0)) return false;
    for (let n = 0; n < f.length; n++) {
      let r = f[n][0], a = f[n][2], i = this[r];
      if (i + a < 0 || i + a >= e[r].length) return false;
      let o = e[r][i + a];
      if (r === "day" && (o = this._matchDayValue(o, i, e, t)), !o) return false;
    }
    return true;
  }
};
function F(s3) {
  s3 === void 0 && (s3 = {}), delete s3.name, s3.legacyMode !== void 0 && s3.domAndDow === void 0 ? s3.domAndDow = !s3.legacyMode : s3.domAndDow === void 0 && (s3.domAndDow = false), s3.legacyMode = !s3.domAndDow;
  let e = (n, r) => n === void 0 ? r : n;
  if (s3.paused = e(s3.paused, false), s3.maxRuns = e(s3.maxRuns, 1 / 0), s3.catch = e(s3.catch, false), s3.unref = e(s3.unref, false), s3.mode = e(s3.mode, "auto"), s3.alternativeWeekdays = e(s3.alternativeWeekdays, false), s3.sloppyRanges = e(s3.sloppyRanges, false), s3.fixedTimeRule = e(s3.fixedTimeRule, "single-value"), s3.allowPast = e(s3.allowPast, false), s3.interval = s3.interval === void 0 ? 0 : parseInt(s3.interval.toString(), 10), s3.utcOffset = s3.utcOffset === void 0 ? void 0 : parseInt(s3.utcOffset.toString(), 10), s3.dayOffset = s3.dayOffset === void 0 ? 0 : parseInt(s3.dayOffset.toString(), 10), !["auto", "5-part", "6-part", "7-part", "5-or-6-parts", "6-or-7-parts"].includes(s3.mode)) throw new Error("CronOptions: mode must be one of 'auto', '5-part', '6-part', '7-part', '5-or-6-parts', or '6-or-7-parts'.");
  if (!["single-value", "no-wildcard"].includes(s3.fixedTimeRule)) throw new Error("CronOptions: fixedTimeRule must be one of 'single-value' or 'no-wildcard'.");
  s3.timezone === "" && (s3.timezone = void 0);
  let t = s3.timezone ?? s3.utcOffset;
  if (s3.startAt && (s3.startAt = I(new c(s3.startAt, t))), s3.stopAt && (s3.stopAt = I(new c(s3.stopAt, t))), s3.interval !== null) {
    if (isNaN(s3.interval)) throw new Error("CronOptions: Supplied value for interval is not a number");
    if (s3.interval < 0) throw new Error("CronOptions: Supplied value for interval can not be negative");
  }
  if (s3.utcOffset !== void 0) {
    if (isNaN(s3.utcOffset)) throw new Error("CronOptions: Invalid value passed for utcOffset, should be number representing minutes offset from UTC.");
    if (s3.utcOffset < -870 || s3.utcOffset > 870) throw new Error("CronOptions: utcOffset out of bounds.");
    if (s3.utcOffset !== void 0 && s3.timezone) throw new Error("CronOptions: Combining 'utcOffset' with 'timezone' is not allowed.");
  }
  if (s3.unref !== true && s3.unref !== false) throw new Error("CronOptions: Unref should be either true, false or undefined(false).");
  if (s3.dayOffset !== void 0 && s3.dayOffset !== 0 && isNaN(s3.dayOffset)) throw new Error("CronOptions: Invalid value passed for dayOffset, should be a number representing days to offset.");
  return s3;
}
function I(s3) {
  return s3.ms ? (s3.ms = 0, new c(new Date(s3.getTime() + 1e3), s3.tz)) : s3;
}
function b(s3) {
  return typeof s3 == "function";
}
function L(s3) {
  return b(s3);
}
function Y(s3) {
  typeof Deno < "u" && typeof Deno.unrefTimer < "u" ? Deno.unrefTimer(s3) : s3 && typeof s3.unref < "u" && s3.unref();
}
var P = 1440 * 60 * 1e3;
var $ = 30 * 1e3;
var M = [];
var j = class {
  name;
  options;
  _states;
  fn;
  _startAtRoundingMs = 0;
  getTz() {
    return this.options.timezone ?? this.options.utcOffset;
  }
  applyDayOffset(e) {
    let t = this._offsetMs();
    return t ? new Date(e.getTime() + t) : e;
  }
  _offsetMs() {
    return (this.options.dayOffset ?? 0) * P;
  }
  get _startAt() {
    return this.options.startAt;
  }
  get _stopAt() {
    return this.options.stopAt;
  }
  _nextTarget(e, t) {
    let n = this._offsetMs(), r = this._next(this._shift(e), new Date(t.getTime() - n), { startAt: this._shift(this._startAt), stopAt: this._shift(this._stopAt) });
    return r ? this.applyDayOffset(r.getDate(false)) : null;
  }
  _previousTarget(e, t) {
    let n = this._toMs(e ?? t) - this._offsetMs(), r = this._previous(new Date(n), { startAt: this._shift(this._startAt), stopAt: this._shift(this._stopAt) });
    return r ? this.applyDayOffset(r.getDate(false)) : null;
  }
  _shift(e) {
    if (e != null) return new c(new Date(this._toMs(e) - this._offsetMs()), this.getTz());
  }
  constructor(e, t, n) {
    let r, a;
    if (b(t)) a = t;
    else if (typeof t == "object") r = t;
    else if (t !== void 0) throw new Error("Cron: Invalid argument passed for optionsIn. Should be one of function, or object (options).");
    if (b(n)) a = n;
    else if (typeof n == "object") r = n;
    else if (n !== void 0) throw new Error("Cron: Invalid argument passed for funcIn. Should be one of function, or object (options).");
    this.name = r?.name;
    let i = r?.startAt;
    this.options = F(r), i && this._startAt && (this._startAtRoundingMs = this._startAt.getTime() - new c(i, this.getTz()).getTime());
    let o = !!e && (e instanceof Date || typeof e == "string" && e.indexOf(":") > 0);
    if (this._states = { kill: false, blocking: false, previousRun: void 0, currentRun: void 0, once: void 0, currentTimeout: void 0, maxRuns: r ? r.maxRuns : void 0, paused: r ? r.paused : false, pattern: o ? new C("* * * * *", void 0, { mode: "auto" }) : new C(e, this.options.timezone, { mode: this.options.mode, alternativeWeekdays: this.options.alternativeWeekdays, sloppyRanges: this.options.sloppyRanges, fixedTimeRule: this.options.fixedTimeRule }) }, o && (this._states.once = new c(e, this.getTz())), this.name) {
      if (M.find((l) => l.name === this.name)) throw new Error("Cron: Tried to initialize new named job '" + this.name + "', but name already taken.");
      M.push(this);
    }
    return a !== void 0 && L(a) && (this.fn = a, this.schedule()), this;
  }
  nextRun(e) {
    return this._nextTarget(e, /* @__PURE__ */ new Date());
  }
  nextRuns(e, t) {
    this._states.maxRuns !== void 0 && e > this._states.maxRuns && (e = this._states.maxRuns);
    let n = t || this._states.currentRun || void 0;
    return this._enumerateRuns(e, n, "next");
  }
  previousRuns(e, t) {
    return this._enumerateRuns(e, t || void 0, "previous");
  }
  enumerate(e) {
    return new A(this, e);
  }
  _enumerateRuns(e, t, n) {
    let r = [], a = /* @__PURE__ */ new Date(), i = t;
    for (; e-- > 0; ) {
      let o = n === "next" ? this._nextTarget(i, a) : this._previousTarget(i, a);
      if (!o) break;
      r.push(o), i = o;
    }
    return r;
  }
  match(e) {
    if (this._states.once) {
      let n = new c(e, this.getTz());
      n.ms = 0;
      let r = new c(this._states.once, this.getTz());
      return r.ms = 0, n.getTime() === r.getTime();
    }
    let t = new c(e, this.getTz());
    return t.ms = 0, t.match(this._states.pattern, this.options);
  }
  getPattern() {
    if (!this._states.once) return this._states.pattern ? this._states.pattern.pattern : void 0;
  }
  getOnce() {
    return this._states.once ? this._states.once.getDate() : null;
  }
  isRunning() {
    return !this._states.paused && !this._states.kill && this.fn !== void 0 && this._nextTarget(this._states.currentRun, /* @__PURE__ */ new Date()) !== null;
  }
  isStopped() {
    return this._states.kill;
  }
  isBusy() {
    return this._states.blocking;
  }
  currentRun() {
    return this._states.currentRun ? this._states.currentRun.getDate() : null;
  }
  previousRun() {
    return this._states.previousRun ? this._states.previousRun.getDate() : null;
  }
  msToNext(e) {
    let t = /* @__PURE__ */ new Date(), n = this._nextTarget(e, t);
    return n ? n.getTime() - this._toMs(e ?? t) : null;
  }
  stop() {
    this._states.kill = true, this._states.currentTimeout && clearTimeout(this._states.currentTimeout);
    let e = M.indexOf(this);
    e >= 0 && M.splice(e, 1);
  }
  pause() {
    return this._states.paused = true, !this._states.kill;
  }
  resume() {
    return this._states.paused = false, !this._states.kill;
  }
  schedule(e) {
    return this._schedule(e);
  }
  _schedule(e, t) {
    if (e && this.fn) throw new Error("Cron: It is not allowed to schedule two functions using the same Croner instance.");
    e && (this.fn = e);
    let n = t ?? /* @__PURE__ */ new Date(), r = this._nextTarget(void 0, n), a = r ? r.getTime() - n.getTime() : null, i = this._states.currentRun;
    i && i.getTime() > n.getTime() && (i = void 0);
    let o = this._nextTarget(i, n);
    return a === null || isNaN(a) || o === null ? this : (a > $ && (a = $), a < 0 && (a = this._states.paused ? 1e3 : 0), this._states.currentTimeout = setTimeout(() => this._checkTrigger(o), a), this._states.currentTimeout && this.options.unref && Y(this._states.currentTimeout), this);
  }
  async _trigger(e = /* @__PURE__ */ new Date()) {
    this._states.blocking = true, this._states.currentRun = new c(e, this.getTz());
    try {
      if (this.options.catch) try {
        this.fn !== void 0 && await this.fn(this, this.options.context);
      } catch (t) {
        if (b(this.options.catch)) try {
          Promise.resolve(this.options.catch(t, this)).catch(() => {
          });
        } catch {
        }
      }
      else this.fn !== void 0 && await this.fn(this, this.options.context);
    } finally {
      this._states.previousRun = new c(e, this.getTz()), this._states.blocking = false;
    }
  }
  async trigger() {
    await this._trigger();
  }
  runsLeft() {
    return this._states.maxRuns;
  }
  _checkTrigger(e) {
    let t = /* @__PURE__ */ new Date(), n = !this._states.paused && t.getTime() >= e.getTime(), r = this._states.blocking && this.options.protect;
    n && !r ? (this._states.maxRuns !== void 0 && this._states.maxRuns--, this._trigger(t)) : n && r && b(this.options.protect) && setTimeout(() => this.options.protect(this), 0), this._schedule(void 0, n ? void 0 : t);
  }
  _next(e, t, n) {
    let r = n ? n.startAt : this._startAt, a = n ? n.stopAt : this._stopAt, i = !!e, o = !!(e || this._states.currentRun), u = false;
    !e && r && this.options.interval && (e = this._calculatePreviousRun(r, t), e && (o = true), u = !e);
    let l = e ?? t ?? /* @__PURE__ */ new Date(), h = this._toMs(l);
    e = new c(l, this.getTz()), r && h < r.getTime() && (e = u ? r : new c(new Date(r.getTime() - 1e3), this.getTz()), h = e.getTime());
    let m = this._states.once || new c(e, this.getTz());
    if (!u && m !== this._states.once && (m = this._findOccurrence(e, h, 1, o)), this._states.once) {
      let d = this._states.once.getTime(), p = h - d;
      if (r && d < r.getTime() - this._startAtRoundingMs || this._states.currentRun && this.applyDayOffset(this._states.once.getDate()).getTime() <= this._states.currentRun.getTime() || (i ? p >= 0 : p > 1e3 && !this.options.allowPast)) return null;
    }
    return m === null || this._states.maxRuns !== void 0 && this._states.maxRuns <= 0 || this._states.kill || a && m.getTime() >= a.getTime() ? null : m;
  }
  _previous(e, t) {
    let n = this._toMs(e ?? /* @__PURE__ */ new Date());
    if (t.stopAt && n > t.stopAt.getTime() && (n = t.stopAt.getTime()), this._states.once) return this._states.once.getTime() < n ? this._states.once : null;
    let r = this._findOccurrence(new c(new Date(n), this.getTz()), n, -1);
    return r === null || t.startAt && r.getTime() < t.startAt.getTime() ? null : r;
  }
  _toMs(e) {
    if (e instanceof Date) return e.getTime();
    let t = new c(e, this.getTz());
    return t.getTime() + (typeof t.tz == "string" ? t.ms : 0);
  }
  _findOccurrence(e, t, n, r = false) {
    let a = this.options.interval ?? 0;
    if (a > 1 && (n === -1 || r)) {
      t += (a - 1) * 1e3 * n;
      let m = new Date(t);
      if (isNaN(m.getTime()) || (e = new c(m, this.getTz()), !(e.year >= 1 && e.year <= 9999))) return null;
      r = false;
    }
    let i = this._walk(e, t, n, r), o = this.getTz();
    if (this._states.pattern.isFixedTime && n === 1 || typeof o == "number" || U(t, o) !== (n === 1 ? "earlier" : "later")) return i;
    let u = Math.floor(t / 1e3) * 1e3, l = n === 1 ? k(u, u + P, o) : k(u - P, u, o) - 1e3;
    if (i && (l - i.getTime()) * n > 0) return i;
    let h = this._walk(new c(new Date(l), o), l - n, n, false, true);
    return !i || !h ? i ?? h : (i.getTime() - h.getTime()) * n > 0 ? h : i;
  }
  _walk(e, t, n, r, a = false) {
    let i = this._states.pattern, o = (l, h) => n === 1 ? l.increment(i, this.options, h) : l.decrement(i, this.options, h), u = new c(e, this.getTz());
    for ((!a || !u.match(i, this.options)) && (u = o(u, r)); u; ) {
      let l = this._runAt(u, t, n);
      if (l) return new c(l, this.getTz());
      u = o(u, false);
    }
    return null;
  }
  _runAt(e, t, n) {
    let r = (d) => (d.getTime() - t) * n > 0, a = e.tz;
    if (typeof a == "number") {
      let d = e.getDate();
      return r(d) ? d : null;
    }
    let i = T(e.year, e.month + 1, e.day, e.hour, e.minute, e.second, a), o = _(i), u = this._states.pattern.isFixedTime;
    if (o.kind === "single") return r(o.date) ? o.date : null;
    if (o.kind === "ambiguous") {
      let { earlier: d, later: p } = o;
      return (u ? [d] : n === 1 ? [d, p] : [p, d]).find(r) ?? null;
    }
    if (!u) return null;
    let l = new Date(k(o.before.getTime(), o.after.getTime(), a)), h = y(l, a);
    return h.y === i.y && h.m === i.m && h.d === i.d && r(l) ? l : null;
  }
  _calculatePreviousRun(e, t) {
    let n = new c(t, this.getTz()).getTime();
    if (e.getTime() > n) return;
    let r = this.options.interval * 1e3, a = e;
    for (; a.getTime() + r <= n; ) {
      let i = this._findOccurrence(a, a.getTime(), 1, true);
      if (i === null) break;
      a = i;
    }
    return a;
  }
};
var A = class {
  cron;
  cursor;
  now;
  done;
  initialMaxRuns;
  remainingRuns;
  constructor(e, t) {
    this.cron = e, this.initialMaxRuns = e.runsLeft() ?? 1 / 0, this.reset(t);
  }
  next() {
    if (this.done || this.remainingRuns <= 0) return this.done = true, { value: void 0, done: true };
    let e = this.cron._nextTarget(this.cursor, this.now);
    return e === null ? (this.done = true, { value: void 0, done: true }) : (this.cursor = e, this.remainingRuns--, { value: e, done: false });
  }
  peek() {
    return this.done || this.remainingRuns <= 0 ? null : this.cron._nextTarget(this.cursor, this.now);
  }
  reset(e) {
    this.cursor = e instanceof Date ? new Date(e.getTime()) : e ?? void 0, this.now = /* @__PURE__ */ new Date(), this.done = false, this.remainingRuns = this.initialMaxRuns;
  }
  [Symbol.iterator]() {
    return this;
  }
};

// src/schedules/cron.ts
var FIELDS = [
  { name: "second", min: 0, max: 59 },
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  {
    name: "month",
    min: 1,
    max: 12,
    names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
  },
  // 0 and 7 are both Sunday.
  { name: "day of week", min: 0, max: 7, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] }
];
var MAX_LENGTH = 1e3;
var LONG_AGO = Date.UTC(2e3, 0, 1);
function parseCron(what, expression) {
  if (typeof expression !== "string" || expression.length > MAX_LENGTH) {
    throw new TypeError(`${what} must be a cron expression, such as '0 3 * * *'; got ${shown(expression)}`);
  }
  const texts = expression.trim().split(/\s+/);
  if (texts.length !== 5 && texts.length !== 6) {
    throw new TypeError(
      `${what} must have five fields (minute, hour, day of month, month, day of week), or six with the seconds first; got ${shown(expression)}`
    );
  }
  const fields = FIELDS.slice(-texts.length);
  for (const [index3, field] of fields.entries()) checkField(what, field, texts[index3] ?? "");
  const cron = new j(texts.join(" "), { utcOffset: 0, mode: "5-or-6-parts" });
  const next = (wallMs) => cron.nextRun(new Date(wallMs))?.getTime();
  if (next(LONG_AGO) === void 0) {
    const [day, month] = texts.slice(-3);
    throw new TypeError(
      `${what} never fires: its day of month '${day}' does not come in its month '${month}'`
    );
  }
  return { everyHour: texts.at(-4) === "*", next };
}
function checkField(what, field, text5) {
  for (const item of text5.split(",")) {
    const [, first, last, step] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item) ?? [];
    const low = first === "*" ? field.min : numberOf(field, first);
    const high = first === "*" ? field.max : last === void 0 ? low : numberOf(field, last);
    const ordered = low !== void 0 && high !== void 0 && low <= high;
    const isRange = first === "*" ? last === void 0 : last !== void 0;
    const steps = step === void 0 || isRange && Number(step) >= 1 && Number(step) <= field.max;
    if (ordered && (isRange || first !== "*") && steps) continue;
    const names2 = field.names === void 0 ? "" : `, or ${field.names[0]} to ${field.names.at(-1)}`;
    throw new TypeError(
      `${what}: the ${field.name} '${text5}' must be a list of *, numbers from ${field.min} to ${field.max}${names2}, ranges a-b, and steps */n or a-b/n`
    );
  }
}
function numberOf({ min, max, names: names2 }, text5) {
  if (text5 === void 0) return void 0;
  const named = names2?.indexOf(text5.toLowerCase()) ?? -1;
  if (named >= 0) return min + named;
  const value = /^\d{1,2}$/.test(text5) ? Number(text5) : Number.NaN;
  return value >= min && value <= max ? value : void 0;
}

// src/schedules/zone.ts
var UTC = { offsetMs: () => 0 };
var DAY_MS = 864e5;
var known = /* @__PURE__ */ new Map([["UTC", UTC]]);
var MAX_KNOWN = 1e3;
function zoneOf(what, timeZone) {
  const found2 = known.get(timeZone);
  if (found2 !== void 0) return found2;
  const zone = { offsetMs: offsetsOf(what, timeZone) };
  if (known.size < MAX_KNOWN) known.set(timeZone, zone);
  return zone;
}
function offsetsOf(what, timeZone) {
  let format;
  try {
    if (typeof timeZone !== "string") throw new RangeError();
    format = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric"
    });
  } catch {
    throw new TypeError(
      `${what} must be a time zone that this runtime knows, such as 'Europe/Vienna'; got ${shown(timeZone)}`
    );
  }
  return (instantMs) => {
    const wholeMs = Math.floor(instantMs / 1e3) * 1e3;
    const [month = 0, day, year = 0, hour, minute, second] = (format.format(wholeMs).match(/\d+/g) ?? []).map(
      Number
    );
    return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs;
  };
}
function wallTime(zone, instantMs) {
  return instantMs + zone.offsetMs(instantMs);
}
function firstShown(zone, wallMs) {
  const before = zone.offsetMs(wallMs - DAY_MS);
  const after = zone.offsetMs(wallMs + DAY_MS);
  for (const offset of [Math.max(before, after), Math.min(before, after)]) {
    const instant = wallMs - offset;
    if (zone.offsetMs(instant) === offset) return instant;
  }
  return changeOf(zone, before, wallMs - Math.max(before, after), wallMs - Math.min(before, after));
}
function changeOf(zone, offset, afterMs, untilMs) {
  let low = afterMs;
  let high = untilMs;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetMs(middle) === offset) low = middle;
    else high = middle;
  }
  return high;
}

// src/schedules/timing.ts
var FIRST_LOOK_MS = 6e4;
var FURTHER = 8;
function ticksOf(timing, createdAtMs) {
  const { cron, everyMs, timeZone, startsAtMs, endsAtMs } = timing;
  const first = startsAtMs ?? Math.floor(createdAtMs / 1e3) * 1e3;
  const found2 = cron === null ? (afterMs) => nextInterval(first, everyMs ?? Number.POSITIVE_INFINITY, afterMs) : nextMatch(cron, zoneOf("time_zone", timeZone));
  const after = (instantMs) => {
    const tick = found2(Math.max(instantMs, (startsAtMs ?? Number.NEGATIVE_INFINITY) - 1));
    return tick === void 0 || tick > (endsAtMs ?? LAST_MS) ? void 0 : tick;
  };
  return { after, newest: (count, afterMs, untilMs) => newest(after, count, afterMs, untilMs) };
}
var LAST_MS = Date.UTC(9999, 11, 31);
function nextInterval(firstMs, everyMs, afterMs) {
  return firstMs + Math.max(Math.floor((afterMs - firstMs) / everyMs) + 1, 0) * everyMs;
}
function nextMatch(expression, zone) {
  const cron = parseCron("cron", expression);
  return cron.everyHour ? nextElapsed : nextShown;
  function nextShown(afterMs) {
    let wall = cron.next(wallTime(zone, afterMs));
    while (wall !== void 0) {
      const instant = firstShown(zone, wall);
      if (instant > afterMs) return instant;
      wall = cron.next(wall);
    }
    return void 0;
  }
  function nextElapsed(afterMs) {
    let from = afterMs;
    let offset = zone.offsetMs(from);
    for (; ; ) {
      const wall = cron.next(from + offset);
      if (wall === void 0) return void 0;
      const instant = wall - offset;
      const within = Math.min(instant, from + DAY_MS);
      if (zone.offsetMs(within) !== offset) {
        const change = changeOf(zone, offset, from, within);
        from = change - 1;
        offset = zone.offsetMs(change);
      } else if (within === instant) {
        return instant;
      } else {
        from = Math.max(within, instant - 2 * DAY_MS);
        offset = zone.offsetMs(from);
      }
    }
  }
}
function newest(after, count, afterMs, untilMs) {
  for (let lookMs = FIRST_LOOK_MS; ; lookMs *= FURTHER) {
    const fromMs = Math.max(afterMs, untilMs - lookMs);
    const found2 = [];
    let tick = after(fromMs);
    while (tick !== void 0 && tick <= untilMs) {
      found2.push(tick);
      tick = after(tick);
    }
    if (found2.length >= count || fromMs === afterMs) return found2.slice(-count);
  }
}

// src/schedules/define-schedule.ts
function defineSchedule(name, schedule) {
  checkText2("defineSchedule: name", name, MAX_NAME_BYTES);
  const what = (option) => `defineSchedule('${name}'): ${option}`;
  const {
    job,
    payload,
    cron,
    every,
    timeZone = "UTC",
    startsAt,
    endsAt
  } = checkObject2(what("its options"), schedule);
  const { catchUp = "latest", overlap = true } = schedule;
  checkDefinition(`defineSchedule('${name}')`, job);
  if (cron === void 0 === (every === void 0)) {
    throw new TypeError(`${what("cron or every")} must be given, and not both`);
  }
  zoneOf(what("timeZone"), timeZone);
  if (cron !== void 0) parseCron(what("cron"), cron);
  if (!CATCH_UPS.includes(catchUp)) {
    throw new TypeError(`${what("catchUp")} must be one of ${CATCH_UPS.join(", ")}; got ${shown(catchUp)}`);
  }
  const defined = Object.freeze({
    name,
    job,
    payload,
    cron,
    every: every === void 0 ? void 0 : checkDurationMs(what("every"), every, 1e3),
    timeZone,
    catchUp,
    overlap: checkBoolean(what("overlap"), overlap),
    startsAt: startsAt === void 0 ? void 0 : checkDate(what("startsAt"), startsAt),
    endsAt: endsAt === void 0 ? void 0 : checkDate(what("endsAt"), endsAt),
    // The default of the type parameter is the type of what is left out.
    options: schedule.options ?? {}
  });
  if (startsAt !== void 0 && endsAt !== void 0) {
    const ticks = ticksOf(timingOf(defined), startsAt.getTime());
    if (ticks.after(startsAt.getTime() - 1) === void 0) {
      throw new RangeError(
        `${what("endsAt")} comes before the first tick after startsAt: nothing would fire`
      );
    }
  }
  const made = newJob(job, payload, defined.options, LARGEST_MAX_PAYLOAD_BYTES);
  if ("then" in made) made.then(void 0, () => void 0);
  return defined;
}
function timingOf({
  cron,
  every,
  timeZone,
  startsAt,
  endsAt
}) {
  return {
    cron: cron ?? null,
    everyMs: every ?? null,
    timeZone,
    startsAtMs: startsAt?.getTime() ?? null,
    endsAtMs: endsAt?.getTime() ?? null
  };
}

// src/schedules/schedules-in.ts
import { is as is7 } from "drizzle-orm";
import { PgTable as PgTable2 } from "drizzle-orm/pg-core";

// src/schedules/schedules.ts
init_errors();

// src/queries/find-schedules.ts
import { sql as sql32 } from "drizzle-orm";
init_schedule_tables();

// src/sql/stored-schedule.ts
import { sql as sql31 } from "drizzle-orm";
var timingColumns = sql31`s.name, s.revision, s.cron, s.every_ms, s.time_zone, s.catch_up,
      ${epochMs("s.starts_at")} as starts_at, ${epochMs("s.ends_at")} as ends_at,
      ${epochMs("s.next_at")} as next_at, ${epochMs("s.passed_at")} as passed_at,
      ${epochMs("s.created_at")} as created_at`;
var scheduleColumns = sql31`${timingColumns}, s.queue, s.kind, s.payload::text as payload,
      s.settings::text as settings, s.overlap, ${epochMs("s.last_at")} as last_at,
      ${epochMs("s.paused_at")} as paused_at, s.declared_by is not null as declared`;
function toStoredTiming(row) {
  return {
    name: String(row.name),
    revision: Number(row.revision),
    cron: row.cron === null ? null : String(row.cron),
    everyMs: row.every_ms === null ? null : Number(row.every_ms),
    timeZone: String(row.time_zone),
    // Checked on the way in; another value comes from other hands, and is not fired.
    catchUp: row.catch_up,
    startsAtMs: timeOf(row.starts_at),
    endsAtMs: timeOf(row.ends_at),
    nextAtMs: timeOf(row.next_at),
    passedAtMs: dateOf(row.passed_at).getTime(),
    createdAtMs: dateOf(row.created_at).getTime()
  };
}
function toStoredSchedule(row) {
  return {
    ...toStoredTiming(row),
    queue: String(row.queue),
    kind: String(row.kind),
    payload: String(row.payload),
    settings: String(row.settings),
    overlap: row.overlap === true,
    lastAtMs: timeOf(row.last_at),
    pausedAtMs: timeOf(row.paused_at),
    declared: row.declared === true
  };
}
function timeOf(value) {
  return value === null ? null : dateOf(value).getTime();
}
function newScheduleRow(schedule) {
  const { payload, settings, ...plain } = schedule;
  const row = JSON.stringify({
    name: plain.name,
    queue: plain.queue,
    kind: plain.kind,
    cron: plain.cron,
    every_ms: plain.everyMs,
    time_zone: plain.timeZone,
    catch_up: plain.catchUp,
    overlap: plain.overlap,
    starts_at_ms: plain.startsAtMs,
    ends_at_ms: plain.endsAtMs
  });
  return `${row.slice(0, -1)},"payload":${payload},"settings":${settings}}`;
}
var NEW_COLUMNS = "name text, queue text, kind text, payload jsonb, settings jsonb, cron text, every_ms int8, time_zone text, catch_up text, overlap bool, starts_at_ms float8, ends_at_ms float8";
var SET_COLUMNS = sql31.raw(
  "name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at, ends_at"
);
var newSchedules = sql31`i.name, i.queue, i.kind, coalesce(i.payload, 'null'::jsonb), i.settings,
      i.cron, i.every_ms, i.time_zone, i.catch_up, i.overlap, to_timestamp(i.starts_at_ms / 1000),
      to_timestamp(i.ends_at_ms / 1000)`;
function ticksAlike(other) {
  return sql31.raw(
    `(s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from (${["cron", "every_ms", "time_zone", "starts_at", "ends_at"].map((name) => `${other}.${name}`)})`
  );
}
var replaceSchedule = sql31`
      queue = excluded.queue, kind = excluded.kind, payload = excluded.payload, settings = excluded.settings,
      cron = excluded.cron, every_ms = excluded.every_ms, time_zone = excluded.time_zone,
      catch_up = excluded.catch_up, overlap = excluded.overlap,
      starts_at = excluded.starts_at, ends_at = excluded.ends_at,
      next_at = case when ${ticksAlike("excluded")} then s.next_at else excluded.next_at end,
      passed_at = case when ${ticksAlike("excluded")} then s.passed_at
        else greatest(s.passed_at, excluded.passed_at) end,
      declared_by = excluded.declared_by, seen_at = excluded.seen_at, revision = s.revision + 1`;

// src/queries/find-schedules.ts
async function findSchedules(db, tables2, page) {
  return (await queryScheduleRows(db, tables2, findSchedulesQuery(tables2, page))).map(toStoredSchedule);
}
function findSchedulesQuery({ queueSchedules }, { kind, after, limit }) {
  return sql32`
    select ${scheduleColumns} from ${queueSchedules} as s
    where ${after === void 0 ? sql32`true` : sql32`s.name > ${after}`}${kind === void 0 ? sql32`` : sql32` and s.kind = ${kind}`}
    order by s.name limit ${limit}`;
}
async function findSchedule(db, tables2, name) {
  const [row] = await queryScheduleRows(db, tables2, findScheduleQuery(tables2, name));
  return row === void 0 ? void 0 : { schedule: toStoredSchedule(row), nowMs: Number(row.now_ms) };
}
function findScheduleQuery({ queueSchedules }, name) {
  return sql32`
    select ${scheduleColumns}, ${epochMs("statement_timestamp()")} as now_ms
    from ${queueSchedules} as s where s.name = ${name}`;
}

// src/queries/fire-schedules.ts
import { sql as sql34 } from "drizzle-orm";

// src/sql/row-locks.ts
init_server_facts();
import { sql as sql33 } from "drizzle-orm";
var BRIEFLY = "100ms";
function lockPatience(tables2, locks) {
  return locks === "wait" || isDistributed(tables2) ? sql33`` : sql33` cross join set_config('lock_timeout', ${BRIEFLY}::text, true) as patience`;
}

// src/queries/fire-schedules.ts
init_schedule_tables();
async function fireSchedules(db, tables2, firings, channel) {
  const rows = await queryScheduleRows(db, tables2, fireSchedulesQuery(tables2, firings, channel));
  const fired = /* @__PURE__ */ new Map();
  for (const { name, id } of rows) {
    const ids = fired.get(String(name)) ?? [];
    fired.set(String(name), ids);
    if (id !== null) ids.push(Number(id));
  }
  return [...fired].map(([name, ids]) => ({ name, ids }));
}
function fireSchedulesQuery(tables2, firings, channel) {
  const { queueSchedules, queueJobs: queueJobs2 } = tables2;
  const own = ownColumnsOf(queueJobs2);
  const values = own.map((column) => {
    const value = sql34`(s.settings -> 'own' ->> ${column.key}::text)`;
    return sql34`, case when s.settings -> 'own' -> ${column.key}::text is null
        then ${ownDefault(column)} else ${ownValue(column, value)} end`;
  });
  return sql34`
    with i as (
      select * from ${jsonRows(firings.map(toRow), FIRING_COLUMNS)} as i
    ),
    s as materialized (
      select s.name, s.queue, s.kind, s.payload, s.settings, s.overlap, s.last_at,
        i.ticks, i.passed_ms, i.next_ms, i.last_ms, i.place
      from i join ${queueSchedules} as s on s.name = i.name${lockPatience(tables2, "briefly")}
      where s.name = any(array(select name from i)) and s.revision = i.revision and s.paused_at is null
      order by i.place
      for update of s skip locked
    ),
    moved as (
      update ${queueSchedules} as m set revision = m.revision + 1,
        next_at = to_timestamp(s.next_ms / 1000), passed_at = to_timestamp(s.passed_ms / 1000),
        last_at = coalesce(to_timestamp(s.last_ms / 1000), s.last_at)
      from s where m.name = any(array(select name from s)) and m.name = s.name
      returning m.name
    ),
    inserted as (
      insert into ${queueJobs2}
        (${COLUMNS2}${ownNames(own)})
      select s.queue, s.kind, s.payload, (s.settings ->> 'priority')::int2, statement_timestamp(),
        statement_timestamp(), (s.settings ->> 'maxAttempts')::int2,
        case when not s.overlap then ${OVERLAP_KEY}::text || s.name end,
        s.settings -> 'metadata' || t.tick${sql34.join(values)}
      from s cross join lateral jsonb_array_elements(s.ticks) with ordinality as t(tick, place)
      order by s.place, t.place
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning id, queue, metadata
    )
    select m.name, j.id, ${channel === void 0 ? sql34`null` : sql34`case when j.id is not null then ${notified(channel, sql34`j.queue`)} end`} as woke
    from moved as m left join inserted as j on j.metadata ->> 'schedule' = m.name
    order by j.id`;
}
var OVERLAP_KEY = "schedule:";
var COLUMNS2 = sql34.raw(
  "queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata"
);
var FIRING_COLUMNS = "name text, revision int8, ticks jsonb, passed_ms float8, next_ms float8, last_ms float8";
function toRow({ name, revision, ticks, passedMs, nextMs }) {
  return JSON.stringify({
    name,
    revision,
    ticks: ticks.map((tick) => tickMetadata(name, tick)),
    passed_ms: passedMs,
    next_ms: nextMs,
    last_ms: ticks.at(-1) ?? null
  });
}
function tickMetadata(schedule, tickMs) {
  return { schedule, tick: new Date(tickMs).toISOString() };
}

// src/queries/pause-schedule.ts
init_schedule_tables();
import { sql as sql35 } from "drizzle-orm";
async function pauseSchedule(db, tables2, name) {
  return toChange(await queryScheduleRows(db, tables2, pauseScheduleQuery(tables2, name)));
}
function pauseScheduleQuery({ queueSchedules }, name) {
  return sql35`
    with changed as (
      update ${queueSchedules} as s set paused_at = statement_timestamp()
      where s.name = ${name} and s.paused_at is null
      returning s.name
    )
    select exists (select from changed) as changed,
      exists (select from ${queueSchedules} as s where s.name = ${name}) as known`;
}
async function resumeSchedule(db, tables2, resume) {
  const change = toChange(await queryScheduleRows(db, tables2, resumeScheduleQuery(tables2, resume.name)));
  if (!change.changed || resume.channel === void 0) return change;
  await notifyWorkers(db, tables2, REQUESTED, resume.channel);
  return change;
}
function resumeScheduleQuery({ queueSchedules }, name) {
  return sql35`
    with changed as (
      update ${queueSchedules} as s set paused_at = null
      where s.name = ${name} and s.paused_at is not null
      returning s.name
    )
    select exists (select from changed) as changed,
      exists (select from ${queueSchedules} as s where s.name = ${name}) as known`;
}
function toChange([row]) {
  return { changed: row?.changed === true, known: row?.known === true };
}

// src/queries/remove-schedule.ts
init_schedule_tables();
import { sql as sql36 } from "drizzle-orm";
async function removeSchedule(db, tables2, name) {
  return (await queryScheduleRows(db, tables2, removeScheduleQuery(tables2, name))).length > 0;
}
function removeScheduleQuery({ queueSchedules }, name) {
  return sql36`
    delete from ${queueSchedules} as s where s.name = ${name} returning s.name`;
}

// src/queries/set-schedule.ts
import { sql as sql37 } from "drizzle-orm";
init_schedule_tables();
async function setSchedule(db, tables2, set) {
  const [row] = await queryScheduleRows(db, tables2, setScheduleQuery(tables2, set.schedule));
  if (row === void 0) return void 0;
  if (set.channel !== void 0) await notifyWorkers(db, tables2, REQUESTED, set.channel);
  return toStoredSchedule(row);
}
function setScheduleQuery({ queueSchedules }, schedule) {
  return sql37`
    with i as (
      select * from ${jsonRows([newScheduleRow(schedule)], NEW_COLUMNS)} as i
    ),
    stored as (
      insert into ${queueSchedules} as s (${SET_COLUMNS}, next_at, passed_at, seen_at, created_at)
      select ${newSchedules}, now.at, now.at, now.at, now.at
      from i cross join (select statement_timestamp() as at) as now
      on conflict (name) do update set ${replaceSchedule}
      where s.declared_by is null
      returning s.*
    )
    select ${scheduleColumns} from stored as s`;
}

// src/schedules/schedules.ts
init_quoted_name();
init_schedule_tables();

// src/schedules/schedule-record.ts
function toScheduleRecord(schedule) {
  const { name, kind, queue, cron, everyMs, timeZone, catchUp, overlap, declared } = schedule;
  return {
    name,
    kind,
    queue,
    payload: JSON.parse(schedule.payload),
    cron,
    every: everyMs,
    timeZone,
    catchUp,
    overlap,
    startsAt: dateOrNull(schedule.startsAtMs),
    endsAt: dateOrNull(schedule.endsAtMs),
    nextAt: dateOrNull(nextAtMs(schedule)),
    lastAt: dateOrNull(schedule.lastAtMs),
    pausedAt: dateOrNull(schedule.pausedAtMs),
    declared,
    createdAt: new Date(schedule.createdAtMs)
  };
}
function nextAtMs(schedule) {
  const { nextAtMs: nextAtMs2, passedAtMs, pausedAtMs, createdAtMs } = schedule;
  if (pausedAtMs !== null || nextAtMs2 === null) return null;
  return nextAtMs2 > passedAtMs ? nextAtMs2 : ticksOf(schedule, createdAtMs).after(passedAtMs) ?? null;
}
function dateOrNull(ms) {
  return ms === null ? null : new Date(ms);
}

// src/schedules/schedules.ts
var Schedules = class {
  /** @internal */
  tables;
  #queue;
  #own;
  /** @internal use {@link schedulesIn} */
  constructor(queue, queueSchedules) {
    this.#queue = queue;
    this.#own = ownColumnsOf(queue.tables.queueJobs);
    this.tables = { ...queue.tables, queueSchedules };
  }
  /**
   * Creates a schedule, or changes the one of this name. Workers that have a handler for its kind fire it.
   * With the same timing it keeps its place; with another it begins with the first tick after this moment,
   * and due ticks of the old one pass. A pause stays.
   *
   * Under concurrency: waits for another open transaction that has changed the same schedule.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   * @throws MissingMigrationError when the table is missing
   * @throws QueueError when workers declare a schedule of this name
   */
  async set(db, schedule) {
    const made = await this.toStore("schedules.set", schedule);
    const stored = await setSchedule(db, this.tables, { schedule: made, channel: this.#queue.channel });
    if (stored !== void 0) return toScheduleRecord(stored);
    throw new QueueError(
      `The schedule '${made.name}' is declared by workers: change it in their code, or remove it once no worker declares it any more`
    );
  }
  /** Removes a schedule, not its jobs; `false` if there is none. A declared one is back within a minute. */
  async remove(db, name) {
    return await removeSchedule(db, this.tables, checkName("remove", name));
  }
  /**
   * Pauses a schedule until {@link resume}, across restarts and changes; `false` when it was paused already.
   *
   * @throws QueueError when there is no such schedule
   */
  async pause(db, name) {
    checkName("pause", name);
    return changed2(name, await pauseSchedule(db, this.tables, name));
  }
  /**
   * Ends a schedule's pause; `false` when it was not paused. `catchUp` decides about the ticks in between.
   *
   * @throws QueueError when there is no such schedule
   */
  async resume(db, name) {
    checkName("resume", name);
    const { channel } = this.#queue;
    return changed2(name, await resumeSchedule(db, this.tables, { name, channel }));
  }
  /**
   * Enqueues a job of the schedule, paused or not; its ticks go on as they were. The job's metadata has the
   * schedule's name and, as its `tick`, the given time or the database's.
   *
   * @throws QueueError when there is no such schedule
   */
  async runNow(db, name, { tick } = {}) {
    checkName("runNow", name);
    if (tick !== void 0) checkDate("schedules.runNow: tick", tick);
    const found2 = await findSchedule(db, this.tables, name);
    if (found2 === void 0) throw noSuch(name);
    const { queue, kind, payload, settings, overlap } = found2.schedule;
    const { priority, maxAttempts, metadata, own } = JSON.parse(settings);
    const job = {
      queue,
      kind,
      payload,
      priority,
      maxAttempts,
      delayMs: 0,
      runAtMs: null,
      uniqueKey: overlap ? null : OVERLAP_KEY + name,
      metadata: JSON.stringify({
        ...metadata,
        ...tickMetadata(name, tick?.getTime() ?? found2.nowMs)
      }),
      ...this.#own.length > 0 && { own: this.#own.map(({ key }) => own[key]) }
    };
    return await this.#queue.enqueue(db, job, JSON.parse(payload));
  }
  /** One schedule by its name; `undefined` when there is none. */
  async find(db, name) {
    const found2 = await findSchedule(db, this.tables, checkName("find", name));
    return found2 === void 0 ? void 0 : toScheduleRecord(found2.schedule);
  }
  /** The schedules by name, with their next ticks, a page at a time. */
  async list(db, filter = {}) {
    checkObject2("schedules.list: its filter", filter);
    const limit = checkInteger("schedules.list: limit", filter.limit ?? 50, 1, 1e3);
    if (filter.job !== void 0) checkDefinition("schedules.list", filter.job);
    if (filter.cursor !== void 0) checkText2("schedules.list: cursor", filter.cursor, MAX_NAME_BYTES);
    const found2 = await findSchedules(db, this.tables, {
      kind: filter.job?.kind,
      after: filter.cursor,
      limit: limit + 1
    });
    const schedules = found2.slice(0, limit).map(toScheduleRecord);
    return { schedules, nextCursor: found2.length > limit ? schedules.at(-1)?.name : void 0 };
  }
  /** What a definition is in the table. @throws as `enqueue` for a payload or an option @internal */
  async toStore(caller, schedule) {
    if (typeof schedule !== "object" || schedule === null || !("catchUp" in schedule)) {
      throw new TypeError(`${caller} takes what defineSchedule() returns, got ${shown(schedule)}`);
    }
    const { name, job, payload, catchUp, overlap, options } = schedule;
    const made = await newJob(job, payload, options, this.#queue.maxPayloadBytes);
    const values = withOwn(this.#own, made, options).own ?? [];
    const own = Object.fromEntries(
      this.#own.flatMap(({ key }, index3) => values[index3] === void 0 ? [] : [[key, values[index3]]])
    );
    const { priority, maxAttempts, metadata } = made;
    const plain = JSON.stringify({ priority, maxAttempts, own });
    return {
      ...timingOf(schedule),
      name,
      queue: made.queue,
      kind: made.kind,
      payload: made.payload,
      settings: `${plain.slice(0, -1)},"metadata":${metadata}}`,
      catchUp,
      overlap
    };
  }
  /** What `queue.check` finds when the table is not there. @internal */
  get missing() {
    return {
      code: "tables-missing",
      severity: "error",
      message: `${quotedName(this.tables.queueSchedules)} does not exist, so no schedule can be set or fired`,
      fix: `Run \`npx drizzle-kit generate\` and \`npx drizzle-kit migrate\`. If there is nothing to generate, the schema file that drizzle-kit reads must have \`export * from '${CONTROL_ENTRY}'\` at its top level, or what createControlTables() returns`
    };
  }
  /** Where the workers of its queues are notified. @internal */
  get channel() {
    return this.#queue.channel;
  }
};
function checkName(method, name) {
  return checkText2(`schedules.${method}: name`, name, MAX_NAME_BYTES);
}
function changed2(name, { changed: changed3, known: known3 }) {
  if (!known3) throw noSuch(name);
  return changed3;
}
function noSuch(name) {
  return new QueueError(`There is no schedule '${name}'`);
}

// src/schedules/schedules-in.ts
function schedulesIn(queueSchedules) {
  if (!is7(queueSchedules, PgTable2)) {
    throw new TypeError(
      `schedulesIn takes the table queueSchedules of 'drizzle-queue/schema/control'; got ${shown(queueSchedules)}`
    );
  }
  return (queue) => new Schedules(queue, queueSchedules);
}

// src/worker/attempt/handler.ts
init_errors();
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

// src/worker/worker.ts
import { setMaxListeners as setMaxListeners2 } from "node:events";

// src/drivers/listen.ts
function aborted(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

// src/worker/worker.ts
init_errors();
init_check_database();

// src/queries/register-worker.ts
init_executor();
import { sql as sql38 } from "drizzle-orm";
async function registerWorker(db, tables2, worker) {
  const [row] = await queryRows(db, tables2, registerWorkerQuery(tables2, worker));
  return Number(row?.id);
}
function registerWorkerQuery({ queueWorkers: queueWorkers2 }, { name, queues }) {
  return sql38`
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
  /** Ends all parts; returns whether they ended within `ms` milliseconds: a silent database may hold one. */
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
var stops = /* @__PURE__ */ new Set();
function onFirstSignal(stop) {
  if (stops.size === 0) {
    process.on("SIGINT", stopAll);
    process.on("SIGTERM", stopAll);
  }
  stops.add(stop);
  return () => forget(stop);
}
function stopAll() {
  for (const stop of [...stops]) {
    forget(stop);
    stop();
  }
}
function forget(stop) {
  stops.delete(stop);
  if (stops.size > 0) return;
  process.off("SIGINT", stopAll);
  process.off("SIGTERM", stopAll);
}

// src/worker/options.ts
import { hostname } from "node:os";
var DEFAULT_CONCURRENCY = 10;
var MAX_QUEUES2 = 1e4;
var WEEK_MS = 7 * 24 * 36e5;
function checkRunOptions(caller, options) {
  checkObject2(`${caller}: its options`, options);
  if (typeof options.queue?.tables !== "object") {
    throw new TypeError(`${caller}: queue must be what createQueue() returns; got ${shown(options.queue)}`);
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
    name: checkText2(what("name"), options.name ?? `${hostname()}:${process.pid}`, MAX_NAME_BYTES),
    around: options.queue.around?.run,
    ...schedulesOf(options)
  };
}
function schedulesOf({ queue, schedules: declared = [] }) {
  const schedules = queue.schedules;
  if (!Array.isArray(declared)) {
    throw new TypeError(`createWorker: schedules must be an array, got ${shown(declared)}`);
  }
  if (declared.length > 0 && schedules === void 0) {
    throw new TypeError(
      "createWorker: its queue has no schedules: write createQueue({ schedules: schedulesIn(queueSchedules) }), with the table of 'drizzle-queue/schema/control'"
    );
  }
  const names2 = /* @__PURE__ */ new Set();
  for (const schedule of declared) {
    const { name } = checkObject2("createWorker: a schedule", schedule);
    if (names2.has(name)) throw new TypeError(`createWorker: schedules has '${name}' twice`);
    names2.add(name);
  }
  return { schedules, declared };
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
  if (served.length > MAX_QUEUES2) {
    throw new RangeError(
      `createWorker: a worker serves at most ${MAX_QUEUES2} queues, got ${served.length}: divide them among several workers, or put jobs of many tenants into a few queues`
    );
  }
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

// src/drivers/runner-on.ts
import { PgDialect } from "drizzle-orm/pg-core";
var dialect = new PgDialect();
function runnerOn(query) {
  return {
    execute(statement) {
      const { sql: sql75, params } = dialect.sqlToQuery(statement.getSQL());
      return query(sql75, params);
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
      const lost = new Promise((_2, reject) => {
        listener.on("error", reject);
        listener.on("end", () => reject(new Error("The connection that listens was closed")));
        listener.on("notification", ({ payload }) => {
          if (!signal.aborted) events.notify(payload ?? "");
        });
        listener.connect().then(async () => {
          if (signal.aborted) return;
          await listener.query(`listen "${channel}"`);
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
var GOODBYE_S = 0.25;
var known2 = /* @__PURE__ */ new WeakMap();
var SharedConnection = class _SharedConnection {
  #listen;
  #client;
  /** What postgres.js does about a loss: it listens again, for all who are still in `channels`. */
  #listenAgain;
  #members = /* @__PURE__ */ new Set();
  /** Set once it is given up; resolves when it sends nothing any more. */
  #closed;
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
        this.#closed ? Promise.reject(closed()) : unsafe.call(client, text5, parameters)
      )
    );
  }
  /**
   * The connection that a call of `listen` has just begun to use.
   *
   * @returns `undefined` for Bun, and for a postgres.js of other insides: there a loss goes unnoticed, and on
   * the connection that replaces a lost one nobody would hold a worker's lock
   */
  static of(listen) {
    const { sql: client, channels } = listen;
    if (client === void 0 || channels === void 0) return void 0;
    const { max, onclose } = client.options;
    const { unsafe } = client;
    if (max !== 1 || onclose === void 0 || unsafe === void 0) return void 0;
    const shared = known2.get(client) ?? new _SharedConnection(listen, client, unsafe);
    known2.set(client, shared);
    return shared;
  }
  /**
   * One more that listens; `lost` rejects when the connection is lost, and `leave` resolves when nothing more
   * is sent on behalf of this one.
   */
  join(channel, onNotify) {
    let lose = () => void 0;
    const lost = new Promise((_2, reject) => {
      lose = reject;
    });
    lost.catch(() => void 0);
    const member = { channel, onNotify, lose };
    this.#members.add(member);
    return { lost, leave: () => this.#leave(member) };
  }
  destroy(reason) {
    if (this.#closed) return;
    const members = [...this.#members];
    for (const member of members) this.#forget(member);
    this.#close(0);
    this.#listenAgain();
    for (const { lose } of members) lose(reason);
  }
  async #leave(member) {
    if (this.#closed === void 0) {
      this.#forget(member);
      if (Object.keys(this.#listen.channels ?? {}).length === 0) this.#close(GOODBYE_S);
    }
    await this.#closed;
  }
  #forget(member) {
    this.#members.delete(member);
    const { channels } = this.#listen;
    const entry = channels?.[member.channel];
    if (channels === void 0 || entry === void 0) return;
    entry.listeners = entry.listeners.filter(({ fn }) => fn !== member.onNotify);
    if (entry.listeners.length === 0) delete channels[member.channel];
  }
  #close(timeout) {
    if (this.#listen.sql === this.#client) this.#listen.sql = void 0;
    delete this.#client.options.onclose;
    this.#closed = this.#client.end({ timeout }).catch(() => void 0);
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
      if (membership !== void 0) await membership.leave();
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
init_executor();
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
      const { sql: sql75, params } = dialect2.sqlToQuery(query.getSQL());
      try {
        return await client.unsafe(sql75, params, { prepare: true });
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

// src/worker/parts.ts
init_server_facts();

// src/worker/attempt/progress.ts
init_errors();

// src/queries/write-progress.ts
init_executor();
import { sql as sql40 } from "drizzle-orm";

// src/sql/fence.ts
import { sql as sql39 } from "drizzle-orm";
function stillHeld({ queue, workerId }) {
  return sql39`j.queue = ${queue} and j.id = any(array(select id from i))
        and j.worker_id is not distinct from ${workerId}::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true`;
}
function idsAndFences(jobs) {
  const ids = jobs.map(({ id }) => id);
  const fences = jobs.map(({ fence }) => fence);
  return sql39`unnest(${arrayText(ids)}::text::int8[]), unnest(${arrayText(fences)}::text::int8[])`;
}
function arrayText(values) {
  return `{${values.join(",")}}`;
}

// src/queries/write-progress.ts
async function writeProgress(db, tables2, holder, jobs) {
  const rows = await queryRows(db, tables2, writeProgressQuery(tables2, holder, jobs));
  return new Set(rows.map((row) => Number(row.id)));
}
function writeProgressQuery({ queueJobs: queueJobs2 }, holder, jobs) {
  const values = `[${jobs.map(({ progress }) => progress).join(",")}]`;
  return sql40`
    with i as materialized (
      select id, fence, progress
      from rows from (${idsAndFences(jobs)}, jsonb_array_elements(${values}::text::jsonb))
        as r(id, fence, progress)
    ),
    free as (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(holder)}
      for no key update skip locked
    )
    update ${queueJobs2} as j set progress = i.progress
    from i
    where j.queue = ${holder.queue} and j.id = any(array(select id from free))
      and i.id = j.id and i.fence = j.fence
    returning j.id`;
}

// src/worker/time/condition.ts
var Condition = class {
  #signalled = false;
  #waiting = /* @__PURE__ */ new Set();
  get signalled() {
    return this.#signalled;
  }
  /** Ends all current waits, or else the next one. */
  signal() {
    if (this.#waiting.size === 0) this.#signalled = true;
    for (const end of [...this.#waiting]) end();
  }
  /** Forgets a signal that is about to be acted on. */
  clear() {
    this.#signalled = false;
  }
  /** Waits at most `ms` milliseconds, or until `over` is aborted; returns whether there was a signal. */
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
  #queues = /* @__PURE__ */ new Map();
  #added = new Condition();
  constructor(environment, events) {
    this.#environment = environment;
    this.#events = events;
  }
  /** Takes a value, in place of an earlier one that is not written yet. Never throws. */
  report(attempt, value) {
    const { id, queue } = attempt.job;
    try {
      this.#of(queue).report(attempt, progressToStore(value));
    } catch (error) {
      this.#events.emit("error", { error, during: `the progress of job ${id} of '${queue}'` });
    }
  }
  async run(signal) {
    const runs = /* @__PURE__ */ new Map();
    while (!signal.aborted) {
      for (const queue of this.#queues.values()) if (!runs.has(queue)) runs.set(queue, queue.run(signal));
      await this.#added.wait(Number.POSITIVE_INFINITY, signal);
    }
    await Promise.all(runs.values());
  }
  #of(name) {
    let queue = this.#queues.get(name);
    if (queue === void 0) {
      queue = new QueueProgress(this.#environment, this.#events);
      this.#queues.set(name, queue);
      this.#added.signal();
    }
    return queue;
  }
};
var QueueProgress = class {
  #environment;
  #events;
  /** The JSON texts to write. */
  #values = /* @__PURE__ */ new Map();
  #reported = new Condition();
  constructor(environment, events) {
    this.#environment = environment;
    this.#events = events;
  }
  report(attempt, json) {
    this.#values.set(attempt, json);
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
  /** Never rejects; returns how many milliseconds to wait before the next write. */
  async #write() {
    for (const attempt of this.#values.keys()) if (!attempt.open) this.#values.delete(attempt);
    const values = [...this.#values];
    const [first] = values;
    if (first === void 0) return 0;
    const { db, tables: tables2 } = this.#environment;
    const { holder } = first[0];
    const jobs = values.map(([{ job }, progress]) => ({ id: job.id, fence: job.fence, progress }));
    const startMs = performance.now();
    try {
      const written = await writeProgress(db, tables2, holder, jobs);
      for (const [attempt, progress] of values) {
        if (written.has(attempt.job.id) && this.#values.get(attempt) === progress)
          this.#values.delete(attempt);
      }
      return Math.max(0, startMs + INTERVAL_MS2 - performance.now());
    } catch (error) {
      this.#events.emit("error", { error, during: `writing the progress of jobs of '${holder.queue}'` });
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

// src/worker/attempt/attempts.ts
init_errors();

// src/worker/attempt/attempt.ts
init_errors();

// src/worker/attempt/completion.ts
init_errors();

// src/job/transition.ts
init_errors();
function verdictOn(outcome, { cancelReason }) {
  if (outcome.type === "completed" || outcome.type === "cancelled") return outcome;
  if (cancelReason !== void 0) return { type: "cancelled", reason: cancelReason };
  if (outcome.type !== "committed") return outcome;
  const error = new QueueError("The transaction in which the handler called complete(tx) did not commit");
  return { type: "failed", error };
}
function cancellation(attempt, reason) {
  return { attempt, name: "Cancelled", message: storable2(reason) };
}
function transitionFor(outcome, facts2) {
  const { attempt, keepResult } = facts2;
  const verdict = verdictOn(outcome, facts2);
  switch (verdict.type) {
    case "completed":
      return {
        type: "finish",
        state: "completed",
        output: verdict.output,
        error: null,
        keepResult
      };
    case "failed": {
      const error = describeError(verdict.error, attempt);
      if (isNonRetryable(verdict.error) || attempt >= facts2.maxAttempts) {
        return { type: "finish", state: "discarded", output: null, error, keepResult: true };
      }
      return {
        type: "reschedule",
        delayMs: backoffDelayMs(facts2.backoff, attempt, verdict.error),
        attempt,
        error
      };
    }
    case "snoozed":
      return {
        type: "reschedule",
        delayMs: verdict.delayMs,
        attempt: attempt - 1,
        error: null
      };
    case "cancelled":
      return {
        type: "finish",
        state: "cancelled",
        output: null,
        error: cancellation(attempt, verdict.reason),
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
import { sql as sql42 } from "drizzle-orm";
init_executor();

// src/sql/plan-anew.ts
import { sql as sql41 } from "drizzle-orm";
function planAnew() {
  const one = sql41`generate_series(1, ${1}::int4)`;
  return sql41`${one} as a cross join ${one} as b cross join ${one} as c`;
}

// src/queries/finish-jobs.ts
async function finishJobs(db, tables2, holder, finishes, options) {
  const rows = await queryRows(db, tables2, finishJobsQuery(tables2, holder, finishes, options));
  return finishedBut(finishes, rows.map(toKey));
}
async function finishFreeJobs(db, tables2, holder, finishes) {
  const rows = await queryRows(db, tables2, finishJobsQuery(tables2, holder, finishes, { locks: "skip" }));
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
function finishJobsQuery(tables2, holder, finishes, { onlyInTransaction = false, locks = "wait" } = {}) {
  const { queueJobs: queueJobs2, queueResults: queueResults2 } = tables2;
  const inTransaction = onlyInTransaction ? sql42` and pg_current_xact_id_if_assigned() is not null` : sql42``;
  const own = ownColumnsOf(queueJobs2);
  const from = sql42`${planAnew()}${lockPatience(tables2, locks)}`;
  const skip = locks === "skip";
  const free = skip ? sql42`,
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(holder)}
      for update skip locked
    )` : sql42``;
  const where = skip ? sql42`j.queue = ${holder.queue} and j.id = any(array(select id from free))` : sql42`${stillHeld(holder)}${inTransaction}`;
  const locked = skip ? sql42`, (id, fence) in (select j.id, j.fence from ${queueJobs2} as j where ${stillHeld(holder)}) as locked` : sql42``;
  const rest = sql42`
    select id, fence${locked} from i where (id, fence) not in (select id, fence from finished)`;
  if (!finishes.some(({ transition }) => transition.keepResult)) {
    return endHolds(tables2, {
      ctes: sql42`
    with i as materialized (
      select id, fence from ${from} cross join rows from (${idsAndFences(finishes)}) as r(id, fence)
    )${free}`,
      change: "delete",
      where,
      returning: sql42`j.id, j.fence`,
      answer: { name: "finished", select: rest }
    });
  }
  return endHolds(tables2, {
    ctes: sql42`
    with i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep,
        nullif(output, 'null') as output,
        ${withTime(sql42`nullif(error, 'null')`)} as error
      from ${from}
      cross join rows from (${idsAndFences(finishes)}, ${endings(finishes)})
        as r(id, fence, state, keep, output, error)
    )${free}`,
    change: "delete",
    where,
    returning: sql42`j.*`,
    answer: {
      name: "finished",
      select: sql42`,
    recorded as (
      insert into ${queueResults2} (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts,
        priority, weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at,
        claimed_at, finished_at${ownNames(own)})
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, ${withError(sql42`f.errors`, sql42`i.error`)},
        f.attempt, f.max_attempts, f.priority, f.weight, f.fence, f.batch_id, f.unique_key, f.group_key,
        f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at, statement_timestamp()${ownNames(own, "f.")}
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
  return sql42`unnest(${arrayText(states)}::text::text[]), unnest(${arrayText(keeps)}::text::bool[]),
        jsonb_array_elements(${`[${outputs.join(",")}]`}::text::jsonb),
        jsonb_array_elements(${`[${errors.join(",")}]`}::text::jsonb)`;
}

// src/queries/transaction-id.ts
init_executor();
import { sql as sql43 } from "drizzle-orm";
async function transactionId(tx, tables2) {
  const [row] = await queryRows(tx, tables2, transactionIdQuery);
  return String(row?.id);
}
var transactionIdQuery = sql43`select pg_current_xact_id()::text as id`;

// src/queries/complete-job.ts
async function completeJob(tx, tables2, holder, job) {
  const ended = async () => {
    const ids = await finishJobs(tx, tables2, holder, [job], { onlyInTransaction: true });
    return ids.has(job.id);
  };
  if (await ended()) return "completed";
  const id = await transactionId(tx, tables2);
  if (await ended()) return "completed";
  return id === await transactionId(tx, tables2) ? "lost" : "outside";
}

// src/queries/lock-held-job.ts
init_executor();
import { sql as sql44 } from "drizzle-orm";
async function lockHeldJob(db, tables2, holder, job) {
  const [row] = await queryRows(db, tables2, lockHeldJobQuery(tables2, holder, job));
  if (row?.locked === true) return "locked here";
  return row?.there === true ? "locked elsewhere" : "gone";
}
function lockHeldJobQuery({ queueJobs: queueJobs2 }, holder, job) {
  return sql44`
    with i as materialized (select id, fence from rows from (${idsAndFences([job])}) as r(id, fence)),
    locked as materialized (
      select j.id from ${queueJobs2} as j where ${stillHeld(holder)} for update skip locked
    )
    select exists (select from locked) as locked,
      exists (select from ${queueJobs2} as j where ${stillHeld(holder)}) as there`;
}

// src/worker/attempt/completion.ts
var AGAIN = "complete has already been called";
var MAX_TRIES2 = 6;
var FIRST_WAIT_MS2 = 10;
var Completion = class {
  constructor(attempt) {
    this.attempt = attempt;
  }
  #ran = false;
  #underWay = false;
  /** Whether the job has been ended in a transaction, provided that this commits. */
  get ran() {
    return this.#ran;
  }
  /** See `HandlerContext.complete`. */
  async complete(tx, output) {
    const { job, handler, environment } = this.attempt;
    if (typeof tx?.rollback !== "function") {
      throw new TypeError(
        "complete(tx) takes a transaction, as db.transaction(async (tx) => \u2026) hands it over"
      );
    }
    if (this.#underWay) throw new LeaseLostError(job.kind, job.id, `${AGAIN}, and is still at work`);
    this.#underWay = true;
    try {
      this.attempt.checkOpen();
      const json = await this.attempt.until(outputToStore(handler.job, output));
      await environment.checkTransaction?.(tx);
      if (this.#ran) await this.#lockAgain(tx);
      this.attempt.checkOpen();
      await faultPoint("complete: checked");
      await this.#finish(tx, json);
    } finally {
      this.#underWay = false;
    }
  }
  async #finish(tx, json) {
    const { job, facts: facts2, environment, holder } = this.attempt;
    const transition = transitionFor({ type: "completed", output: json }, facts2);
    if (transition.type !== "finish") throw new TypeError("A completed attempt finishes its job");
    const ranBefore = this.#ran;
    this.#ran = true;
    const finish = { id: job.id, fence: job.fence, transition };
    const completion = await completeJob(tx, environment.tables, holder, finish);
    if (completion === "completed") return;
    this.#ran = ranBefore;
    if (completion === "lost") throw this.#lost();
    throw new QueueError(
      `Job ${job.id} ('${job.kind}') is not completed: complete(tx) did not run inside a transaction, whose connection was lost or which is over`
    );
  }
  /**
   * Only the database knows whether an earlier call's transaction has rolled back. While it is open the row
   * is locked, and waiting could last for ever: this very handler may have it open around this one.
   */
  async #lockAgain(tx) {
    const { job, environment, holder } = this.attempt;
    for (let tries = 1, waitMs = FIRST_WAIT_MS2; ; tries++, waitMs *= 2) {
      const found2 = await lockHeldJob(tx, environment.tables, holder, job);
      if (found2 === "locked here") return;
      if (found2 === "gone") throw this.#lost();
      if (tries === MAX_TRIES2) {
        throw new LeaseLostError(job.kind, job.id, `${AGAIN}, in another transaction that is still open`);
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
  #lost() {
    const { kind, id } = this.attempt.job;
    if (!this.#ran) return new LeaseLostError(kind, id);
    return new LeaseLostError(kind, id, `${AGAIN}, in this transaction or in one that has committed`);
  }
};

// src/worker/attempt/context.ts
var Context = class _Context {
  constructor(attempt, payload) {
    this.payload = payload;
    this.#attempt = attempt;
    this.db = attempt.environment.db;
    this.complete = (tx, output) => attempt.complete(tx, output);
    Object.defineProperty(this, "signal", _Context.#signal);
    Object.defineProperty(this, "job", _Context.#runningJob);
  }
  db;
  complete;
  #attempt;
  #job;
  static #signal = {
    enumerable: true,
    get() {
      return this.#attempt.signal;
    }
  };
  static #runningJob = {
    enumerable: true,
    get() {
      this.#job ??= runningJob(this.#attempt);
      return this.#job;
    }
  };
};
function runningJob(attempt) {
  const { job, environment } = attempt;
  const running = {
    id: job.id,
    queue: job.queue,
    kind: job.kind,
    payloadBytes: job.payloadBytes,
    priority: job.priority,
    runAt: job.runAt,
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    fence: job.fence,
    uniqueKey: job.uniqueKey,
    errors: job.errors,
    metadata: job.metadata,
    createdAt: job.createdAt,
    claimedAt: job.claimedAt,
    progress: (value) => attempt.report(value)
  };
  for (const { key } of ownColumnsOf(environment.tables.queueJobs)) {
    Reflect.set(running, key, Reflect.get(job, key));
  }
  return running;
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
  #reason;
  /** Rejects the promise that `until` has returned. */
  #reject;
  #began = false;
  #ended = false;
  #interrupted = false;
  #cancelReason;
  #over = false;
  #completion;
  /**
   * How far `Beginnings` has recorded it; `undefined` once its handler is called, or if it is not precious.
   */
  recording;
  /** Whether nothing about its beginning is left to be recorded. */
  get mayBegin() {
    return this.recording === void 0 || this.recording === "recorded";
  }
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
  get began() {
    return this.#began;
  }
  begin() {
    this.#began = true;
    this.environment.onBegin?.(this);
  }
  /** Whether somebody has asked for the job's end. */
  get unwanted() {
    return this.#cancelReason !== void 0;
  }
  /** Whether a handler runs that may still write about its job. */
  get open() {
    return !this.#over && !this.completeRan;
  }
  /** Whether `complete(tx)` has ended the job, provided that its transaction commits. */
  get completeRan() {
    return this.#completion?.ran ?? false;
  }
  get holder() {
    return { queue: this.job.queue, workerId: this.environment.workerId };
  }
  get facts() {
    const { attempt, maxAttempts } = this.job;
    const { backoff, keepResult } = this.handler.job;
    return { attempt, maxAttempts, backoff, keepResult, cancelReason: this.#cancelReason };
  }
  /**
   * Runs the handler. A promise for its result rejects as soon as the attempt is ended from outside.
   * @throws what a handler throws that is no async function
   */
  run(payload) {
    const { around } = this.environment;
    const context = new Context(this, payload);
    if (around === void 0) return this.until(this.#call(context));
    const call = async () => await this.#call(context);
    const onLeft = (error) => this.#abort(
      error instanceof Error ? error : new QueueError("around.run threw no Error", { cause: error })
    );
    return this.until(goAround({ name: "around.run", around, argument: context, step: call, onLeft }));
  }
  #call(context) {
    this.checkOpen();
    return this.handler.run(context);
  }
  /** The result of one stage of the attempt; rejects as soon as the attempt is ended from outside. */
  until(answer2) {
    if (!isPromiseLike(answer2)) return answer2;
    return new Promise((resolve, reject) => {
      answer2.then(resolve, reject);
      if (this.#ended && this.#reason !== void 0) return reject(this.#reason);
      const outer = this.#reject;
      this.#reject = outer === void 0 ? reject : (reason) => {
        outer(reason);
        reject(reason);
      };
    });
  }
  /** Ends the attempt at once: aborts its signal with `reason`, with which `until` rejects. */
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
  /** Stops waiting for the handler. */
  #leave() {
    this.#ended = true;
    if (this.#reason !== void 0) this.#reject?.(this.#reason);
  }
  report(value) {
    if (this.open) this.environment.onProgress?.(this, value);
  }
  async complete(tx, output) {
    this.#completion ??= new Completion(this);
    await this.#completion.complete(tx, output);
  }
  /** The attempt's end is decided: see `overError`. */
  close() {
    this.#over = true;
  }
  /** Why `complete` is refused, and in `runNext` the context's `db`: the attempt's end is decided. */
  get overError() {
    const { kind, id } = this.job;
    return this.#over ? new LeaseLostError(kind, id, "this attempt is already over") : void 0;
  }
  /** @throws why the attempt was ended, or LeaseLostError when its end is decided */
  checkOpen() {
    const error = this.overError ?? (this.#ended ? this.#reason : void 0);
    if (error !== void 0) throw error;
  }
};
function isPromiseLike(value) {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

// src/queries/begin-jobs.ts
init_executor();
import { sql as sql45 } from "drizzle-orm";
async function beginJobs(db, tables2, holder, jobs, options) {
  const rows = await queryRows(db, tables2, beginJobsQuery(tables2, holder, jobs, options));
  await faultPoint("begin: written");
  const begun = new Set(jobs.map(({ id }) => id));
  for (const { id } of rows) begun.delete(Number(id));
  return begun;
}
async function beginFreeJobs(db, tables2, holder, jobs) {
  const rows = await queryRows(db, tables2, beginJobsQuery(tables2, holder, jobs, { locks: "skip" }));
  await faultPoint("begin: written");
  const idsOf = (locked) => new Set(rows.filter((row) => row.locked === locked).map(({ id }) => Number(id)));
  return { begun: idsOf(false), locked: idsOf(true) };
}
function beginJobsQuery(tables2, holder, jobs, { locks = "wait" } = {}) {
  const { queueJobs: queueJobs2 } = tables2;
  const skip = locks === "skip";
  const free = skip ? sql45`,
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(holder)}
      for no key update skip locked
    )` : sql45``;
  const where = skip ? sql45`j.queue = ${holder.queue} and j.id = any(array(select id from free))` : stillHeld(holder);
  const answer2 = skip ? sql45`
    select id, false as locked from begun
    union all
    select j.id, true from ${queueJobs2} as j
    where ${stillHeld(holder)} and j.id not in (select id from begun)` : sql45`
    select id from i where id not in (select id from begun)`;
  return sql45`
    with i as materialized (
      select id, fence from ${planAnew()}${lockPatience(tables2, locks)}
        cross join rows from (${idsAndFences(jobs)}) as r(id, fence)
    )${free},
    begun as (
    update ${queueJobs2} as j set claimed_at = statement_timestamp()
    where ${where}
    returning j.id
    )${answer2}`;
}

// src/worker/attempt/precious-attempt.ts
var MAX_RECORDED = 2e3;
var SURVIVORS_EACH = 16;
function withoutWord({ attempt, maxAttempts, errors }) {
  if (attempt === 1 || attempt > maxAttempts) return 0;
  return Math.max(attempt - 1 - (errors.at(-1)?.attempt ?? 0), 0);
}
function isPrecious(job) {
  return job.attempt === job.maxAttempts || withoutWord(job) > 0;
}
function isLastAfterDeath(job) {
  return job.attempt === job.maxAttempts && withoutWord(job) > 0;
}
function mostTogether(job, survivors) {
  const deaths = withoutWord(job);
  if (deaths === 0) return MAX_RECORDED;
  const most = Math.floor(MAX_RECORDED / 8 ** (deaths - 1));
  const proven = isLastAfterDeath(job) ? Math.floor(survivors / SURVIVORS_EACH) : MAX_RECORDED;
  return Math.max(1, Math.min(most, proven));
}

// src/worker/attempt/refusal.ts
init_executor();
var CANCELLED_STATEMENT = "57014";
var LOCK_NOT_AVAILABLE = "55P03";
var ABOUT_THE_SERVER = /^(08|25|28|3D|40|53|57|58)/;
function isAboutTheServer(error) {
  const sqlState = sqlStateOf(error);
  if (sqlState === void 0) return true;
  return ABOUT_THE_SERVER.test(sqlState) && sqlState !== CANCELLED_STATEMENT;
}
function isCancelled(error) {
  return sqlStateOf(error) === CANCELLED_STATEMENT;
}
function isAboutLocks(error) {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}
function isAboutAccess(error) {
  return sqlStateOf(error)?.startsWith("42") ?? false;
}

// src/worker/attempt/beginnings.ts
var FIRST_RECORDED = 16;
var SHRINK = 0.95;
var FIRST_RETRY_MS = 100;
var MAX_RETRY_MS = 5e3;
var Beginnings = class {
  #options;
  /** By kind, if an attempt of it has ended here: how many of these were last ones after a death. */
  #survivors = /* @__PURE__ */ new Map();
  #stopping = new AbortController();
  #unrecorded = 0;
  #recorded = 0;
  /** The most that may be recorded together with what is recorded now. */
  #most = MAX_RECORDED;
  #isRecording = false;
  /** How many to record ahead, so that no slot waits for the next statement. */
  #stock = FIRST_RECORDED;
  #maxGroup = MAX_RECORDED;
  #refusals = 0;
  #mostArePrecious = false;
  constructor(options) {
    this.#options = options;
  }
  add(attempts) {
    let precious = 0;
    for (const attempt of attempts) {
      if (!isPrecious(attempt.job) || attempt.unwanted) continue;
      precious++;
      attempt.recording = attempt.job.begun ? "recorded" : "claimed";
      if (attempt.job.begun) this.#recorded++;
      else this.#unrecorded++;
    }
    if (attempts.length > 0) this.#mostArePrecious = precious * 2 > attempts.length;
  }
  /** Forgets an attempt: its handler is called, or never will be. */
  delete(attempt) {
    if (attempt.recording === void 0) return;
    if (attempt.recording === "recorded") this.#recorded--;
    else this.#unrecorded--;
    attempt.recording = void 0;
  }
  /** How many to claim ahead: where most are precious, no more than begin with their claim. */
  limit(ahead, soon) {
    return this.#mostArePrecious ? Math.min(ahead, soon, MAX_RECORDED) : ahead;
  }
  /** Whether a statement has failed and is to be sent again: until then claiming more is of no use. */
  get isFailing() {
    return this.#refusals > 0 && this.#isRecording;
  }
  /**
   * Which of the jobs that are claimed now begin with the claim.
   * @param soon how many will be called soon, of those that wait or are claimed now
   */
  ofClaim(waiting, running, concurrency, soon) {
    if (!this.#mostArePrecious) return waiting.length === 0 && running.size < concurrency ? 1 : 0;
    if (this.#standsApart || this.#unrecorded > 0 && !waiting.every((attempt) => this.#isCalm(attempt)))
      return 0;
    for (const { job } of running) if (!this.isProven(job.kind)) return 0;
    const atMost = Math.max(0, Math.min(soon, MAX_RECORDED) - waiting.length);
    return { atMost, provenKinds: [...this.#survivors.keys()] };
  }
  /** An attempt has ended, and the worker lives. */
  noteEnd({ job }) {
    const survivors = this.#survivors.get(job.kind);
    const standsAlone = isLastAfterDeath(job);
    if (survivors === void 0 || standsAlone) {
      this.#survivors.set(job.kind, (survivors ?? 0) + Number(standsAlone));
    }
  }
  isProven(kind) {
    return this.#survivors.has(kind);
  }
  /** Ends the sleep after a failed statement. */
  stop() {
    this.#stopping.abort();
  }
  /** Whether there is something to record now, when `soon` of those that wait will be called soon. */
  isDue(soon) {
    if (this.#unrecorded === 0 || this.#isRecording || this.#standsApart) return false;
    return this.#recorded <= this.#ahead(soon) / 2;
  }
  /** Records the next group of what waits, unless there is none. */
  async record(waiting, soon) {
    if (!this.isDue(soon)) return void 0;
    const group = this.#nextGroup(waiting, this.#ahead(soon));
    if (group.length === 0) return void 0;
    this.#isRecording = true;
    for (const attempt of group) attempt.recording = "recording";
    const result = await this.#write(group);
    this.#isRecording = false;
    return result;
  }
  #ahead(soon) {
    return Math.min(soon, Math.floor(this.#stock));
  }
  /** Whether others may begin beside it. */
  #isCalm({ job, mayBegin }) {
    return mayBegin || this.isProven(job.kind) && mostTogether(job, 0) === MAX_RECORDED;
  }
  /** Whether what is recorded must have been called before anything else begins. */
  get #standsApart() {
    return this.#recorded > 0 && this.#most < MAX_RECORDED;
  }
  #nextGroup(waiting, ahead) {
    this.#most = MAX_RECORDED;
    const group = [];
    for (let at = 0; at < ahead && group.length < this.#maxGroup; at++) {
      const attempt = waiting[at];
      if (attempt === void 0) break;
      const survivors = this.#survivors.get(attempt.job.kind);
      if (attempt.recording === "claimed") {
        const most = Math.min(this.#most, survivors === void 0 ? 1 : mostTogether(attempt.job, survivors));
        if (this.#recorded + group.length >= most) break;
        this.#most = most;
        group.push(attempt);
      }
      if (survivors === void 0) break;
    }
    return group;
  }
  async #write(group) {
    const { holder, events, retries } = this.#options;
    try {
      const { begun, locked } = await this.#begin(group.map(({ job }) => job));
      const ranOut = this.#recorded === 0;
      this.#stock = ranOut ? Math.min(this.#stock * 2, MAX_RECORDED) : Math.max(this.#stock * SHRINK, FIRST_RECORDED);
      this.#maxGroup = Math.min(this.#maxGroup * 2, MAX_RECORDED);
      this.#refusals = 0;
      for (const attempt of group) this.#move(attempt, begun.has(attempt.job.id));
      const left = group.filter(({ recording }) => recording === "claimed");
      return {
        lost: left.filter(({ job }) => !locked.has(job.id)),
        locked: left.filter(({ job }) => locked.has(job.id)),
        refused: void 0
      };
    } catch (error) {
      const isRefused = !isAboutTheServer(error);
      if (!isRefused || group.length === 1) {
        events.emit("error", { error, during: `beginning ${group.length} jobs of '${holder.queue}'` });
      }
      if (!isRefused) {
        const delayMs = Math.min(FIRST_RETRY_MS * 2 ** this.#refusals++, MAX_RETRY_MS);
        await retries.sleep(delayMs, this.#stopping.signal);
      }
      this.#maxGroup = Math.max(1, Math.floor(group.length / 2));
      for (const attempt of group) this.#move(attempt, false);
      return { lost: [], locked: [], refused: isRefused && group.length === 1 ? group[0] : void 0 };
    }
  }
  /** A locked row costs the others one statement more. */
  async #begin(jobs) {
    const { runner, tables: tables2, holder } = this.#options;
    try {
      return {
        begun: await beginJobs(runner, tables2, holder, jobs, { locks: "briefly" }),
        locked: /* @__PURE__ */ new Set()
      };
    } catch (error) {
      if (!isAboutLocks(error)) throw error;
      if (this.#stopping.signal.aborted)
        return { begun: /* @__PURE__ */ new Set(), locked: new Set(jobs.map(({ id }) => id)) };
      return await beginFreeJobs(runner, tables2, holder, jobs);
    }
  }
  #move(attempt, isRecorded) {
    if (attempt.recording === void 0) return;
    attempt.recording = isRecorded ? "recorded" : "claimed";
    if (!isRecorded) return;
    this.#recorded++;
    this.#unrecorded--;
  }
};

// src/queries/find-fates.ts
init_executor();
import { sql as sql46 } from "drizzle-orm";
async function findFates(db, tables2, queue, jobs) {
  const rows = await queryRows(db, tables2, findFatesQuery(tables2, queue, jobs));
  return new Map(rows.map((row) => [Number(row.id), toFate(row)]));
}
function findFatesQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, queue, jobs) {
  return sql46`
    select i.id, coalesce(j.fence, r.fence) as fence, coalesce(j.attempt, r.attempt) as attempt, r.state,
      coalesce(j.worker_id, r.worker_id) is not null as held, j.cancel_reason,
      coalesce(j.errors, r.errors) as errors
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
  const { transition, settled, durationMs } = written;
  if (settled === "lost") {
    events.emit("lost", { job });
    return;
  }
  if (settled === "completed by handler") {
    events.emit("completed", { job, durationMs });
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
      events.emit("interrupted", { job, began: attempt.began });
      return;
  }
}

// src/worker/attempt/conclude.ts
var FIRST_AGAIN_MS = 1e3;
var MAX_AGAIN_MS = 6e4;
async function conclude(options, attempt, outcome, durationMs) {
  const { facts: facts2 } = attempt;
  const verdict = verdictOn(outcome, facts2);
  const transition = transitionFor(verdict, facts2);
  try {
    const settled = await write(options, attempt, transition, false);
    noteSettled(options, attempt, { verdict, transition, settled, durationMs });
  } catch (refusal) {
    await concludeAgain(options, attempt, outcome, durationMs, refusal);
  }
}
async function concludeAgain(options, attempt, outcome, durationMs, refusal) {
  const writeAlone = async (ended) => {
    const verdict = verdictOn(ended, attempt.facts);
    const transition = transitionFor(verdict, attempt.facts);
    const settled = await write(options, attempt, transition, true);
    noteSettled(options, attempt, { verdict, transition, settled, durationMs });
  };
  const writeFailed = (error) => {
    if (isAboutAccess(error) || isCancelled(error)) throw error;
    return writeAlone({ type: "failed", error: withoutQuery(error) });
  };
  try {
    await writeFailed(refusal);
  } catch (error) {
    await untilAccepted(options, attempt, error, () => writeAlone(outcome).catch(writeFailed));
  }
}
async function giveBack(options, attempt, delayMs) {
  const verdict = verdictOn({ type: "interrupted" }, attempt.facts);
  const inPlace = transitionFor(verdict, attempt.facts);
  const isDelayed = delayMs !== void 0 && inPlace.type === "reschedule";
  const transition = isDelayed ? { ...inPlace, delayMs } : inPlace;
  const writeOnce = async (alone) => {
    const settled = await write(options, attempt, transition, alone);
    if (settled === "lost") return;
    noteSettled(options, attempt, { verdict, transition, settled, durationMs: 0 });
  };
  try {
    await writeOnce(false);
  } catch (error) {
    await untilAccepted(options, attempt, error, () => writeOnce(true));
  }
}
async function untilAccepted({ events, leave, onUnwritten }, attempt, refusal, tryAgain) {
  const { job } = attempt;
  let error = refusal;
  for (let delayMs = FIRST_AGAIN_MS; ; delayMs = Math.min(delayMs * 2, MAX_AGAIN_MS)) {
    events.emit("error", { error, during: `settling job ${job.id} of '${job.queue}'` });
    if (leave.aborted) {
      onUnwritten(attempt);
      return;
    }
    await sleep(delayMs, leave);
    try {
      await tryAgain();
      return;
    } catch (again) {
      error = again;
    }
  }
}
function noteSettled({ events, onPutBack, onUnwritten }, attempt, ended) {
  const { settled, transition } = ended;
  if (settled === "abandoned") {
    onUnwritten(attempt);
    return;
  }
  if (settled === "written" && transition.type === "reschedule") {
    onPutBack(attempt.job, transition.delayMs ?? void 0);
  }
  announce(events, attempt, ended.verdict, { ...ended, settled });
}
function write(options, attempt, transition, alone) {
  if (attempt.completeRan) return writeUnlessCompleted(options, attempt, transition);
  const { id, fence } = attempt.job;
  const settlement = { id, fence, transition };
  return alone ? options.settler.settleAlone(settlement) : options.settler.settle(settlement);
}
async function writeUnlessCompleted(options, attempt, transition) {
  if (await handlerHasEnded(options, attempt)) return "completed by handler";
  const { id, fence } = attempt.job;
  const settled = await options.settler.settleAlone({ id, fence, transition });
  return settled === "lost" && await handlerHasEnded(options, attempt) ? "completed by handler" : settled;
}
async function handlerHasEnded({ events, settler }, { environment, job }) {
  if (settler.hasGivenUp) return false;
  try {
    const fate = (await findFates(environment.db, environment.tables, job.queue, [job])).get(job.id);
    return fate === void 0 || fate.state !== null && fate.fence === job.fence;
  } catch (error) {
    events.emit("error", { error, during: `asking what became of job ${job.id} of '${job.queue}'` });
    return false;
  }
}

// src/worker/attempt/execute-job.ts
init_errors();
async function executeJob(attempt) {
  const { job, handler } = attempt;
  if (attempt.unwanted) return { type: "interrupted" };
  if (job.attempt > job.maxAttempts) {
    return { type: "failed", error: new WorkerLostError(job.kind, job.id, job.maxAttempts) };
  }
  attempt.begin();
  const { timeoutMs } = handler.job;
  const timer = timeoutMs === void 0 ? void 0 : setTimeout(() => attempt.end(new JobTimeoutError(job.kind, job.id, timeoutMs)), timeoutMs);
  try {
    const payload = handler.job.payload === void 0 ? void 0 : await attempt.until(payloadFromStore(handler.job, job.payload));
    const returned = await attempt.run(payload);
    return outcomeWithoutOutput(attempt, returned) ?? await completed(attempt, returned);
  } catch (error) {
    if (attempt.interrupted) return { type: "interrupted" };
    return { type: "failed", error: attempt.reason ?? error };
  } finally {
    if (timer !== void 0) clearTimeout(timer);
    attempt.close();
  }
}
function outcomeWithoutOutput(attempt, returned) {
  if (isSnooze(returned)) return { type: "snoozed", delayMs: returned.delayMs };
  if (isCancel(returned)) return { type: "cancelled", reason: returned.reason };
  if (attempt.completeRan) return { type: "committed" };
  const nothing = returned === void 0 && attempt.handler.job.output === void 0;
  return nothing ? { type: "completed", output: "null" } : void 0;
}
async function completed(attempt, returned) {
  const output = outputToStore(attempt.handler.job, returned);
  return { type: "completed", output: await attempt.until(output) };
}

// src/worker/attempt/patience.ts
var MAX_WAIT_MS = 500;
var Patience = class {
  #onLost;
  #timer;
  #lastBeganMs = 0;
  /** @param onLost called when something has waited for too long */
  constructor(onLost) {
    this.#onLost = onLost;
  }
  /** A job has begun: while some do, the others are right to wait. */
  noteBeginning() {
    this.#lastBeganMs = performance.now();
  }
  /** Something waits. */
  watch() {
    this.#timer ??= setTimeout(() => this.#check(), MAX_WAIT_MS);
  }
  stop() {
    clearTimeout(this.#timer);
  }
  #check() {
    const waitedMs = performance.now() - this.#lastBeganMs;
    this.#timer = void 0;
    if (waitedMs >= MAX_WAIT_MS) this.#onLost();
    else this.#timer = setTimeout(() => this.#check(), MAX_WAIT_MS - waitedMs);
  }
};

// src/worker/attempt/prefetch.ts
var HORIZON_MS = 50;
var SOON_MS = 10;
var MAX_PREFETCH = 4e3;
var MAX_BYTES = 8 * 1024 * 1024;
var WEIGHT = 0.05;
var MIN_ATTEMPTS = 5;
var Prefetch = class {
  #attempts = 0;
  #meanMs = 0;
  #recentBytes = 0;
  note(durationMs) {
    this.#attempts++;
    this.#meanMs += (durationMs - this.#meanMs) * Math.max(1 / this.#attempts, WEIGHT);
  }
  /** Learns from a claim. A large payload counts at once and is forgotten slowly, to spare memory. */
  noteClaimed(payloadBytes) {
    for (const bytes of payloadBytes) this.#recentBytes = Math.max(bytes, this.#recentBytes * (1 - WEIGHT));
  }
  /** Learns anew: the expectation was wrong. */
  distrust() {
    this.#attempts = 0;
  }
  /** How many jobs to hold beyond the slots. */
  size(concurrency) {
    const byMemory = MAX_BYTES / Math.max(this.#recentBytes, 1);
    return Math.floor(Math.min(this.#within(HORIZON_MS, concurrency), byMemory, MAX_PREFETCH));
  }
  /** How many jobs beyond the free slots will begin in a moment. */
  soon(concurrency) {
    return this.#within(SOON_MS, concurrency);
  }
  /** How many attempts will end within this time, by what the handlers have lately taken. */
  #within(horizonMs, concurrency) {
    if (this.#attempts < MIN_ATTEMPTS) return 0;
    return Math.floor(concurrency * horizonMs / Math.max(this.#meanMs, 0.01));
  }
};

// src/worker/attempt/turn.ts
var MAX_PER_TURN = 100;
var Turn = class {
  #onNext;
  #begun = 0;
  /** @param onNext called at the next turn, when this one was full */
  constructor(onNext) {
    this.#onNext = onNext;
  }
  get isFull() {
    return this.#begun >= MAX_PER_TURN;
  }
  noteBeginning() {
    this.#begun++;
    if (this.#begun < MAX_PER_TURN) return;
    setImmediate(() => {
      this.#begun = 0;
      this.#onNext();
    });
  }
};

// src/worker/attempt/settle.ts
init_errors();

// src/worker/attempt/settlement.ts
var PendingSettlement = class {
  constructor(id, fence, transition, open) {
    this.id = id;
    this.fence = fence;
    this.transition = transition;
    this.open = open;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }
  result;
  /** Whether the last try got as far as sending it. */
  sent = false;
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
    this.open.delete(this);
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
init_executor();
import { sql as sql47 } from "drizzle-orm";
async function parkJobs(db, tables2, holder, parks) {
  const rows = await queryRows(db, tables2, parkJobsQuery(tables2, holder, parks));
  const putBack = rows.filter((row) => row.locked !== true);
  return {
    parked: new Map(
      putBack.map((row) => [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)])
    ),
    locked: new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id)))
  };
}
function parkJobsQuery(tables2, holder, parks) {
  const transitions = parks.map(({ transition }) => transition);
  const { queueJobs: queueJobs2 } = tables2;
  return endHolds(tables2, {
    ctes: sql47`
    with i as materialized (
      select id, fence, attempt,
        coalesce(statement_timestamp() + delay_ms * interval '1 millisecond', 'infinity') as run_at
      from ${planAnew()}${lockPatience(tables2, "skip")} cross join rows from (${idsAndFences(parks)},
        unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? "null"))}::text::float8[])
      ) as r(id, fence, attempt, delay_ms)
    ),
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(holder)}
      for no key update skip locked
    )`,
    change: {
      set: sql47`attempt = i.attempt,
      run_at = case when j.run_at > j.claimed_at or j.cancel_reason is not null
        then j.run_at else i.run_at end`,
      from: sql47`i`
    },
    where: sql47`j.queue = ${holder.queue} and j.id = any(array(select id from free))
        and i.id = j.id and i.fence = j.fence`,
    returning: sql47`j.id, j.cancel_reason`,
    answer: {
      name: "parked",
      select: sql47`
    select id, cancel_reason, false as locked from parked
    union all
    select j.id, null, true from ${queueJobs2} as j
    where ${stillHeld(holder)} and j.id not in (select id from parked)`
    }
  });
}

// src/queries/reschedule-jobs.ts
init_executor();
import { sql as sql48 } from "drizzle-orm";
async function rescheduleJobs(db, tables2, holder, reschedules, options) {
  const rows = await queryRows(db, tables2, rescheduleJobsQuery(tables2, holder, reschedules, options));
  return new Map(rows.map(toRescheduled));
}
async function rescheduleFreeJobs(db, tables2, holder, reschedules) {
  const rows = await queryRows(
    db,
    tables2,
    rescheduleJobsQuery(tables2, holder, reschedules, { locks: "skip" })
  );
  return {
    rescheduled: new Map(rows.filter((row) => row.locked !== true).map(toRescheduled)),
    locked: new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id)))
  };
}
function toRescheduled(row) {
  return [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)];
}
function rescheduleJobsQuery(tables2, holder, reschedules, { locks = "wait" } = {}) {
  const { queueJobs: queueJobs2 } = tables2;
  const transitions = reschedules.map(({ transition }) => transition);
  const ctes = sql48`
    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        ${withTime(sql48`nullif(error, 'null')`)} as error
      from ${planAnew()}${lockPatience(tables2, locks)}
      cross join rows from (
        ${idsAndFences(reschedules)},
        unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? "null"))}::text::float8[]),
        jsonb_array_elements(${JSON.stringify(transitions.map(({ error }) => error))}::text::jsonb)
      ) as r(id, fence, attempt, delay_ms, error)
    )`;
  const change = {
    set: sql48`attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      errors = ${withError(sql48`j.errors`, sql48`i.error`)}`,
    from: sql48`i`
  };
  const returning = sql48`j.id, j.cancel_reason`;
  if (locks !== "skip") {
    return endHolds(tables2, {
      ctes,
      change,
      where: sql48`i.id = j.id and i.fence = j.fence and ${stillHeld(holder)}`,
      returning
    });
  }
  return endHolds(tables2, {
    ctes: sql48`${ctes},
    free as materialized (
      select j.id from ${queueJobs2} as j
      where ${stillHeld(holder)}
      for no key update skip locked
    )`,
    change,
    where: sql48`j.queue = ${holder.queue} and j.id = any(array(select id from free))
      and i.id = j.id and i.fence = j.fence`,
    returning,
    answer: {
      name: "rescheduled",
      select: sql48`
    select id, cancel_reason, false as locked from rescheduled
    union all
    select j.id, null, true from ${queueJobs2} as j
    where ${stillHeld(holder)} and j.id not in (select id from rescheduled)`
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
var NONE = /* @__PURE__ */ new Set();
async function writeSettlements(options, batch, locks) {
  const { db, tables: tables2, holder, giveUp } = options;
  const open = batch.filter(({ answered }) => !answered);
  for (const settlement of open) settlement.sent = false;
  const locked = [];
  const finishes = open.filter(isFinish);
  if (finishes.length > 0) {
    noteSent(finishes);
    const { finished, locked: left } = locks === "skip" ? await finishFreeJobs(db, tables2, holder, finishes) : { finished: await finishJobs(db, tables2, holder, finishes, { locks }), locked: NONE };
    await faultPoint("settle: finished");
    locked.push(...await answer(options, finishes, { written: finished, locked: left }));
  }
  if (finishes.length === open.length || giveUp.aborted) return locked;
  const reschedules = open.filter(isReschedule);
  if (reschedules.length > 0) {
    noteSent(reschedules);
    const { rescheduled, locked: left } = locks === "skip" ? await rescheduleFreeJobs(db, tables2, holder, reschedules) : { rescheduled: await rescheduleJobs(db, tables2, holder, reschedules, { locks }), locked: NONE };
    await faultPoint("settle: written");
    const written = { written: rescheduled, cancelReasons: rescheduled, locked: left };
    locked.push(...await answer(options, reschedules, written));
  }
  const parks = open.filter(isPark);
  if (parks.length > 0 && !giveUp.aborted) {
    noteSent(parks);
    const { parked, locked: left } = await parkJobs(db, tables2, holder, parks);
    await faultPoint("settle: parked");
    const written = { written: parked, cancelReasons: parked, locked: left };
    locked.push(...await answer(options, parks, written));
  }
  return locked;
}
function noteSent(settlements) {
  for (const settlement of settlements) settlement.sent = true;
}
async function answer(options, sent, { written, cancelReasons, locked }) {
  const unmatched = [];
  for (const settlement of sent) {
    const { id } = settlement;
    if (!written.has(id)) {
      if (!locked.has(id)) unmatched.push(settlement);
      continue;
    }
    const cancelReason = cancelReasons?.get(id) ?? null;
    if (cancelReason === null) settlement.answer("written");
    else settlement.answer(await endUnwanted(options, settlement, cancelReason));
  }
  const fates = await fatesOf(options, unmatched);
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
  return locked.size === 0 ? [] : sent.filter(({ id, answered }) => locked.has(id) && !answered);
}
async function fatesOf({ db, tables: tables2, holder, giveUp }, unmatched) {
  const uncertain = unmatched.filter((settlement) => settlement.uncertain);
  return uncertain.length === 0 || giveUp.aborted ? /* @__PURE__ */ new Map() : await findFates(db, tables2, holder.queue, uncertain);
}
async function endUnwanted({ db, tables: tables2, holder, events, giveUp }, { id, transition }, message) {
  if (giveUp.aborted) return "written";
  const attempt = transition.type === "finish" ? 0 : transition.attempt;
  const reason = cancellation(attempt, message);
  try {
    const ended = await cancelJob(db, tables2, { id, queue: holder.queue, reason });
    return ended ? { cancelled: message } : "written";
  } catch (error) {
    events.emit("error", { error, during: `cancelling job ${id} of '${holder.queue}'` });
    return "written";
  }
}

// src/worker/attempt/settle.ts
var MAX_BATCH = 2e3;
var MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;
var FIRST_RETRY_MS2 = 100;
var MAX_RETRY_MS2 = 5e3;
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
  #listens = false;
  constructor(options) {
    this.#options = options;
  }
  /**
   * Writes one transition, in a batch with others; returns what became of it.
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
  /** The same in its own statement: for a row that was refused, or that the handler may have locked. */
  settleAlone(settlement) {
    const pending = this.#take(settlement);
    if (!pending.answered) this.#run(this.#writeBeside([pending]));
    return pending.result;
  }
  get hasGivenUp() {
    return this.#options.giveUp.aborted;
  }
  /** Resolves when everything has its answer and no statement is under way. */
  async idle() {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
  #take({ id, fence, transition }) {
    const pending = new PendingSettlement(id, fence, transition, this.#open);
    if (this.#options.giveUp.aborted) pending.answer("abandoned");
    else this.#open.add(pending);
    this.#listen();
    return pending;
  }
  /** From the first settlement on: ten thousand listeners on one signal would make a start take seconds. */
  #listen() {
    if (!this.#listens) this.#options.giveUp.addEventListener("abort", () => this.#abandon(), { once: true });
    this.#listens = true;
  }
  #abandon() {
    const { events, holder } = this.#options;
    if (this.#open.size > 0) {
      const error = new QueueError("The worker gave up before the outcomes of these jobs were written");
      events.emit("error", { error, during: `settling ${this.#open.size} jobs of '${holder.queue}'` });
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
  /** Never rejects: what cannot be written now goes on beside the batches. */
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
  /** Writes a batch, again and again while the reason to fail lies outside it. */
  async #repeat(batch, locks) {
    const { events, holder, retries, giveUp } = this.#options;
    for (let delayMs = FIRST_RETRY_MS2; !giveUp.aborted; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS2)) {
      try {
        return await writeSettlements(this.#options, batch, locks);
      } catch (error) {
        if (giveUp.aborted) break;
        if (!isAboutTheServer(error)) throw error;
        for (const one of batch) one.uncertain ||= one.sent;
        events.emit("error", { error, during: `settling ${batch.length} jobs of '${holder.queue}'` });
        if (await retries.sleep(delayMs, giveUp)) delayMs = FIRST_RETRY_MS2;
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

// src/worker/attempt/unwritten.ts
var GIVE_BACK_MS = 750;
var Unwritten = class {
  #jobs = /* @__PURE__ */ new Map();
  add(attempt) {
    const transition = transitionFor({ type: "interrupted" }, attempt.facts);
    const { id, fence } = attempt.job;
    this.#jobs.set(attempt, { id, fence, transition });
  }
  /**
   * Puts their jobs back as they were before the claim; without any it sends nothing. A locked or refused row
   * costs no other, and none is waited for longer than 750 ms. By id and fence: a job that somebody else has
   * claimed stays theirs, and a repetition does nothing.
   * @param tooLate aborted when nothing is to be sent any more
   * @throws what the database says about a row that it refuses
   */
  async giveBack(options, tooLate) {
    if (this.#jobs.size === 0 || tooLate.aborted) return;
    const giveUp = new AbortController();
    const end = () => giveUp.abort();
    tooLate.addEventListener("abort", end);
    const settler = new Settler({ ...options, giveUp: giveUp.signal });
    const timer = setTimeout(end, GIVE_BACK_MS);
    try {
      const settled = await Promise.allSettled([...this.#jobs.values()].map((job) => settler.settle(job)));
      for (const one of settled) if (one.status === "rejected") throw one.reason;
    } finally {
      clearTimeout(timer);
      tooLate.removeEventListener("abort", end);
    }
  }
};

// src/worker/attempt/attempts.ts
var MAX_UNSETTLED = 4e3;
var REFUSED_MS = 1e4;
var Attempts = class {
  #options;
  #conclude;
  #leaving = new AbortController();
  #prefetch = new Prefetch();
  #beginnings;
  /** Claimed ahead, not begun. */
  #waiting = [];
  #unwritten = new Unwritten();
  /** Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  #running = /* @__PURE__ */ new Set();
  /** Those whose outcome is not written yet. */
  #unsettled = /* @__PURE__ */ new Set();
  #turn = new Turn(() => this.#beginWaiting());
  #stopped = false;
  #paused = false;
  #patience = new Patience(() => this.#losePatience());
  constructor(options) {
    this.#options = options;
    const leave = this.#leaving.signal;
    this.#conclude = { ...options, leave, onUnwritten: (attempt) => this.#unwritten.add(attempt) };
    if (!options.persistent) this.#leaving.abort();
    this.#beginnings = new Beginnings({ ...options, tables: options.environment.tables });
  }
  get size() {
    return this.#waiting.length + this.#running.size + this.#unsettled.size;
  }
  get jobs() {
    return [...this.unfinished, ...this.#unsettled].map(({ job }) => job);
  }
  /** How many jobs to claim now; 0 when there is enough to do. */
  get demand() {
    const { concurrency } = this.#options;
    if (this.#paused) return 0;
    if (this.#unsettled.size >= MAX_UNSETTLED || this.#beginnings.isFailing) return 0;
    const ahead = this.#beginnings.limit(this.#prefetch.size(concurrency), this.#prefetch.soon(concurrency));
    if (this.#waiting.length > ahead / 2) return 0;
    return concurrency + ahead - this.#running.size - this.#waiting.length;
  }
  get beginning() {
    return this.#beginnings.ofClaim(this.#waiting, this.#running, this.#options.concurrency, this.#soon);
  }
  /** How many of those that wait, or are claimed now, will be called soon. */
  get #soon() {
    const { concurrency } = this.#options;
    return concurrency - this.#running.size + this.#prefetch.soon(concurrency);
  }
  /** Takes in claimed jobs, in their order. */
  add(jobs) {
    const { handlers, environment } = this.#options;
    this.#prefetch.noteClaimed(jobs.map(({ payloadBytes }) => payloadBytes));
    const attempts = jobs.map((job) => {
      const handler = handlers.get(job.kind);
      if (handler === void 0) throw new TypeError(`No handler for a claimed job of kind '${job.kind}'`);
      return new Attempt(job, handler, environment);
    });
    this.#waiting.push(...attempts);
    this.#beginnings.add(attempts);
    if (this.#stopped || this.#paused) this.#giveBack();
    else this.#beginWaiting();
  }
  /** Begins nothing more, and gives back what waits. What runs goes on. */
  stop() {
    this.#stopped = true;
    this.#leaving.abort();
    this.#patience.stop();
    this.#beginnings.stop();
    this.#giveBack();
  }
  /** Puts back what is still held after `stop`, even if its beginning is still being recorded. */
  async giveBackUnwritten(...[options, tooLate]) {
    for (const attempt of this.#waiting) this.#unwritten.add(attempt);
    await this.#unwritten.giveBack(options, tooLate);
  }
  /** Begins nothing more until `resume`, and gives back what waits. */
  pause() {
    this.#paused = true;
    this.#giveBack();
    this.#options.onChange();
  }
  resume() {
    this.#paused = false;
    this.#options.onChange();
  }
  get paused() {
    return this.#paused;
  }
  get running() {
    return [...this.#running];
  }
  interrupt(reason) {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }
  get unfinished() {
    return [...this.#waiting, ...this.#running];
  }
  /** Ends those of `asked` whose job and fence are not in `held`, which says nothing of later claims. */
  endLost(asked, held) {
    const lost = asked.filter(({ job }) => held.get(job.id) !== job.fence);
    this.#drop(lost);
    for (const attempt of lost) {
      if (!this.#running.has(attempt) || !attempt.open) continue;
      attempt.end(new LeaseLostError(attempt.job.kind, attempt.job.id));
    }
    this.#announceChange();
  }
  #beginWaiting() {
    let began = false;
    let isKnown = true;
    while (this.#running.size < this.#options.concurrency && !this.#turn.isFull) {
      const attempt = this.#waiting[0];
      if (attempt === void 0 || !attempt.mayBegin) break;
      this.#waiting.shift();
      this.#beginnings.delete(attempt);
      began = true;
      isKnown &&= this.#beginnings.isProven(attempt.job.kind);
      this.#turn.noteBeginning();
      this.#running.add(attempt);
      void this.#execute(attempt);
    }
    if (began) this.#patience.noteBeginning();
    if (this.#waiting.length === 0) return;
    this.#patience.watch();
    if (!this.#beginnings.isDue(this.#soon)) return;
    if (isKnown) void this.#recordBeginnings();
    else setImmediate(() => void this.#recordBeginnings());
  }
  async #recordBeginnings() {
    const result = await this.#beginnings.record(this.#waiting, this.#soon);
    if (result === void 0) return;
    const { lost, locked, refused } = result;
    this.#drop(lost);
    for (const { job } of lost) this.#options.events.emit("lost", { job });
    if (this.#stopped || this.#paused) this.#giveBack();
    else {
      this.#giveBack(locked);
      if (refused !== void 0) this.#giveBack([refused], REFUSED_MS);
    }
    this.#beginWaiting();
    this.#announceChange();
  }
  #losePatience() {
    if (this.#waiting.length > 0) this.#prefetch.distrust();
    this.#giveBack();
  }
  /** Puts waiting jobs back as they were. Those that are being recorded follow later. */
  #giveBack(waiting = this.#waiting, delayMs) {
    const back = waiting.filter(({ recording }) => recording !== "recording");
    this.#drop(back);
    for (const attempt of back) {
      this.#unsettled.add(attempt);
      void giveBack(this.#conclude, attempt, delayMs).then(() => this.#forget(attempt));
    }
  }
  #drop(attempts) {
    for (const attempt of attempts) this.#beginnings.delete(attempt);
    const dropped = new Set(attempts);
    this.#waiting = this.#waiting.filter((attempt) => !dropped.has(attempt));
  }
  async #execute(attempt) {
    const startMs = performance.now();
    const outcome = await executeJob(attempt);
    const durationMs = performance.now() - startMs;
    this.#running.delete(attempt);
    this.#unsettled.add(attempt);
    this.#prefetch.note(durationMs);
    this.#beginnings.noteEnd(attempt);
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

// src/worker/time/jitter.ts
function jitter(ms) {
  return ms * (0.75 + Math.random() / 2);
}

// src/queries/claim-jobs.ts
import { sql as sql52 } from "drizzle-orm";

// src/sql/claim-beginning.ts
import { sql as sql50 } from "drizzle-orm";

// src/sql/served-kind.ts
import { sql as sql49 } from "drizzle-orm";
function servedKind(kinds) {
  return sql49`(j.kind in (select jsonb_array_elements_text(${JSON.stringify(kinds)}::text::jsonb))) is true`;
}

// src/sql/claim-beginning.ts
function claimedAt(attempt, beginning) {
  if (beginning === void 0) return sql50`statement_timestamp()`;
  const begins = typeof beginning === "number" ? sql50`j.id = (select id from within limit ${beginning}::int8)` : sql50`j.id in (select id from (select * from within limit ${beginning.atMost}::int8) as w where calm)`;
  return sql50`(array[statement_timestamp()])[case
        when (${attempt} = j.max_attempts or ${withoutWord2(attempt)} > 0)
          and (${begins}) is not true then 2
        else 1
      end]`;
}
function withoutWord2(attempt) {
  const lastRecorded = sql50`coalesce((j.errors -> -1 -> 'attempt')::int4, 0)`;
  return sql50`case when ${attempt} between 2 and j.max_attempts
            then ${attempt} - 1 - ${lastRecorded} else 0 end`;
}
function isCalm(attempt, kinds, { provenKinds }) {
  const proven = kinds.every((kind) => provenKinds.includes(kind)) ? sql50`` : sql50`${servedKind(provenKinds)} and `;
  return sql50`(${proven}${withoutWord2(attempt)} <= (${attempt} < j.max_attempts)::int4)`;
}

// src/sql/claimed-job.ts
import { sql as sql51 } from "drizzle-orm";
var COLUMNS3 = sql51.raw(`j.id, j.kind, j.payload, j.priority, j.claimed_at, j.attempt, j.max_attempts, j.fence,
      j.unique_key, j.errors, j.metadata, j.run_at, j.created_at, j.cancel_reason`);
function claimedColumns(queueJobs2) {
  return sql51`${COLUMNS3}${ownNames(ownColumnsOf(queueJobs2), "j.")}`;
}
function claimedRows(queueJobs2) {
  return sql51`
    select j.id, j.kind, j.payload, pg_column_size(j.payload) as payload_bytes, j.priority,
      j.claimed_at is not null as begun, j.attempt, j.max_attempts, j.fence, j.unique_key,
      nullif(j.errors, '[]') as errors, nullif(j.metadata, '{}') as metadata,
      ${epochMs("j.run_at")} as run_at, ${epochMs("j.created_at")} as created_at,
      ${epochMs("statement_timestamp()")} as claimed_at,
      j.cancel_reason${selectOwn(ownColumnsOf(queueJobs2), "j")}
    from claimed as j`;
}
function toClaimedJob(queueJobs2, row, queue) {
  const own = ownColumnsOf(queueJobs2);
  const job = {
    id: Number(row.id),
    queue,
    kind: String(row.kind),
    payload: row.payload,
    payloadBytes: Number(row.payload_bytes),
    priority: Number(row.priority),
    runAt: dateOf(row.run_at),
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    begun: row.begun === true,
    fence: Number(row.fence),
    uniqueKey: row.unique_key === null ? null : String(row.unique_key),
    // Only this library writes the two jsonb columns, in these shapes; empty ones travel as null.
    errors: row.errors ?? [],
    metadata: row.metadata ?? {},
    createdAt: dateOf(row.created_at),
    claimedAt: dateOf(row.claimed_at),
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason)
  };
  return own.length === 0 ? job : Object.assign(job, ownRecord(own, row));
}

// src/queries/claim-jobs.ts
init_executor();
var MAX_CLAIM_BYTES = 8 * 1024 * 1024;
async function claimJobs(db, tables2, claim) {
  const rows = await queryRows(db, tables2, claimJobsQuery(tables2, claim));
  await faultPoint("claim: answered");
  return rows.sort(inClaimOrder).map((row) => toClaimedJob(tables2.queueJobs, row, claim.queue));
}
function sawTheEnd(limit, jobs) {
  if (jobs.length >= limit) return false;
  return jobs.reduce((bytes, { payloadBytes }) => bytes + payloadBytes, 0) < MAX_CLAIM_BYTES;
}
function claimJobsQuery(tables2, claim) {
  const { queueJobs: queueJobs2, queueWorkers: queueWorkers2, queuePauses: queuePauses2 } = tables2;
  const held = claim.fromGoneWorkers ? (
    // Never its own: a worker that was declared gone by mistake still runs what it holds.
    sql52`(j.worker_id is null or (j.worker_id is distinct from ${claim.workerId}::int8
            and j.worker_id not in (select w.id from ${queueWorkers2} as w)))`
  ) : sql52`j.worker_id is null`;
  const unlessPaused = claim.heedPauses ? sql52`
          and not exists (select from ${queuePauses2} as p where p.queue = ${claim.queue})` : sql52``;
  const due = sql52`${held}${unlessPaused}
          and ${servedKind(claim.kinds)}`;
  const attempt = claim.fromGoneWorkers ? sql52`j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4` : sql52`j.attempt + 1`;
  const calm = typeof claim.beginning === "object" ? isCalm(attempt, claim.kinds, claim.beginning) : void 0;
  const columns = sql52`j.id, pg_column_size(j.payload) as bytes${calm ? sql52`, ${calm} as calm` : sql52``}`;
  const from = claim.ids === void 0 ? inBands(queueJobs2, claim, columns, due) : among(queueJobs2, claim, claim.ids, columns, due);
  const calmUpTo = sql52`, bool_and(calm) over (rows unbounded preceding) as calm`;
  const ctes = sql52`
    with due as (
      select j.id, j.bytes${calm ? sql52`, j.calm` : sql52``}
      from ${from}
      limit ${claim.limit}
    ),
    within as (
      select id${calm ? sql52`, calm` : sql52``} from (
        select id, sum(bytes) over (rows between unbounded preceding and 1 preceding) as before${calm ? calmUpTo : sql52``} from due
      ) as d
      where before is null or before < ${MAX_CLAIM_BYTES}::int8
    )`;
  return endHolds(tables2, {
    ctes,
    // It may end the hold of a worker that is gone.
    change: {
      holder: sql52`${claim.workerId}::int8`,
      claimedAt: claimedAt(attempt, claim.beginning),
      // A key that holds until the first claim; where it is null already, the update stays HOT.
      set: sql52`attempt = ${attempt}, fence = j.fence + 1, waiting_key = null`
    },
    where: sql52`j.queue = ${claim.queue} and j.id = any(array(select id from within))`,
    returning: claimedColumns(queueJobs2),
    answer: { name: "claimed", select: claimedRows(queueJobs2) }
  });
}
function inBands(queueJobs2, { queue, bands, limit }, columns, due) {
  return sql52`${planAnew()} cross join jsonb_to_recordset(${JSON.stringify(bands.map(toBandRow))}::text::jsonb)
        as band(priority int2, floor timestamptz)
      cross join lateral (
        select ${columns} from ${queueJobs2} as j
        where j.queue = ${queue} and j.priority = band.priority and j.group_key is null
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()
          and ${due}
        order by j.run_at, j.id limit (select ${limit}::int8)
        for no key update skip locked
      ) as j`;
}
function among(queueJobs2, { queue }, ids, columns, due) {
  return sql52`${planAnew()} cross join lateral (
        select ${columns} from ${queueJobs2} as j
        where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
          and j.run_at <= statement_timestamp()
          and ${due}
        for no key update skip locked
      ) as j`;
}
function toBandRow({ priority, floorMs }) {
  return { priority, floor: Number.isFinite(floorMs) ? new Date(floorMs).toISOString() : "-infinity" };
}
function inClaimOrder(a, b2) {
  return Number(a.priority) - Number(b2.priority) || Number(a.run_at) - Number(b2.run_at) || Number(a.id) - Number(b2.id);
}

// src/worker/claim/bands.ts
var COMMIT_ALLOWANCE_MS = 1e3;
var Bands = class {
  #passed = new Array(MAX_PRIORITY + 1).fill({
    floorMs: Number.NEGATIVE_INFINITY,
    endMs: Number.NEGATIVE_INFINITY
  });
  /** The database's clock less ours, at least. */
  #aheadMs;
  #busyPriority = MAX_PRIORITY;
  #backlog = false;
  get all() {
    return this.#passed.map(({ floorMs }, priority) => ({ priority, floorMs }));
  }
  /** How far claims have come, by priority. */
  get passed() {
    return this.#passed;
  }
  /** Where a look at all priorities together starts. */
  get lowestFloorMs() {
    return Math.min(...this.#passed.map(({ floorMs }) => floorMs));
  }
  /** The priority whose end claims have not seen, or the last one: less urgent jobs must wait their turn. */
  get busyPriority() {
    return this.#busyPriority;
  }
  /** Whether the last claim has left jobs behind. */
  get backlog() {
    return this.#backlog;
  }
  note({ jobs, short, startMs, endMs }) {
    const last = jobs.at(-1);
    for (const [index3, { priority, runAt }] of jobs.entries()) {
      const first = jobs[index3 - 1]?.priority !== priority;
      const floorMs = first ? runAt.getTime() : this.#passed[priority]?.floorMs ?? 0;
      this.#passed[priority] = { floorMs, endMs: runAt.getTime() + 1 };
    }
    if (last !== void 0) this.#aheadMs = last.claimedAt.getTime() - endMs;
    this.#backlog = !short;
    this.#busyPriority = short ? MAX_PRIORITY : last?.priority ?? MAX_PRIORITY;
    const databaseMs = last?.claimedAt.getTime() ?? startMs + (this.#aheadMs ?? Number.NEGATIVE_INFINITY);
    if (databaseMs > Number.NEGATIVE_INFINITY)
      this.#raise(databaseMs, short ? MAX_PRIORITY + 1 : this.#busyPriority);
  }
  /** Learns from a look that saw everything due at `databaseMs` and found nothing to claim. */
  noteNothing(databaseMs, endMs) {
    this.#aheadMs = databaseMs - endMs;
    this.#backlog = false;
    this.#busyPriority = MAX_PRIORITY;
    this.#raise(databaseMs, MAX_PRIORITY + 1);
  }
  #raise(databaseMs, end) {
    const endMs = Math.floor(databaseMs);
    this.#passed.fill({ floorMs: endMs - COMMIT_ALLOWANCE_MS, endMs }, 0, end);
  }
};

// src/queries/find-overlooked.ts
import { sql as sql54 } from "drizzle-orm";
init_executor();

// src/sql/one-queue.ts
init_server_facts();
import { sql as sql53 } from "drizzle-orm";
function perStatement(tables2, items) {
  if (!isDistributed(tables2)) return [items];
  const byQueue = /* @__PURE__ */ new Map();
  for (const item of items) {
    const same = byQueue.get(item.queue) ?? [];
    byQueue.set(item.queue, same);
    same.push(item);
  }
  return [...byQueue.values()];
}
function queueOf(items, column) {
  const [first] = items;
  const one = first !== void 0 && items.every(({ queue }) => queue === first.queue);
  return one ? sql53`${first.queue}::text` : sql53.raw(column);
}

// src/queries/find-overlooked.ts
async function findOverlooked(runner, tables2, question) {
  const found2 = /* @__PURE__ */ new Map();
  if (question.looks.every((look) => toRanges(look).length === 0)) return { found: found2, stopped: void 0 };
  let stopped;
  for (const looks of perStatement(tables2, question.looks)) {
    const rows = await queryRows(runner, tables2, findOverlookedQuery(tables2, { ...question, looks }));
    for (const row of rows) note(row);
    if (stopped !== void 0) break;
  }
  for (const places of found2.values()) places.sort(inClaimOrder2);
  return { found: found2, stopped };
  function note(row) {
    const queue = String(row.queue);
    if (row.overlooked === true) {
      const places = found2.get(queue) ?? [];
      found2.set(queue, places);
      places.push(toPlace(row));
    }
    if (Number(row.place) === question.slice) stopped = { queue, after: toPlace(row) };
  }
}
function findOverlookedQuery({ queueJobs: queueJobs2, queueWorkers: queueWorkers2 }, { looks, kinds, workerId, slice }) {
  return sql54`
    select queue, priority, ${epochMs("run_at")} as run_at, id, overlooked, place
    from (
      select row_number() over () as place, s.*
      from ${planAnew()}
      cross join jsonb_to_recordset(${JSON.stringify(looks.flatMap(toRanges))}::text::jsonb)
        as i(queue text, priority int2, after timestamptz, after_id int8, floor timestamptz,
          "end" timestamptz)
      cross join lateral (
        select j.queue, j.priority, j.run_at, j.id,
          ${servedKind(kinds)} and case when j.worker_id is null then j.run_at < i.floor
            else j.worker_id <> ${workerId}::int8 
              and (j.worker_id in (select w.id from ${queueWorkers2} as w)) is false
            end as overlooked
        from ${queueJobs2} as j
        where j.queue = ${queueOf(looks, "i.queue")} and j.priority = i.priority and j.group_key is null
          and (j.run_at, j.id) > (i.after, i.after_id) and j.run_at <= i."end"
          and j.run_at <= statement_timestamp()
        order by j.run_at, j.id limit (select ${slice}::int8)
      ) as s
      limit ${slice}
    ) as seen
    where overlooked or place = ${slice}::int8`;
}
var START = { priority: 0, runAtMs: Number.NEGATIVE_INFINITY, id: 0 };
function toRanges({ queue, passed, spanMs, after = START }) {
  const ranges = [];
  for (let priority = after.priority; priority <= MAX_PRIORITY; priority++) {
    const range = passed[priority];
    if (range === void 0 || range.endMs === Number.NEGATIVE_INFINITY) continue;
    const start = { ...START, runAtMs: spanMs === void 0 ? START.runAtMs : range.floorMs - spanMs };
    const { runAtMs, id } = priority === after.priority && after.runAtMs > start.runAtMs ? after : start;
    ranges.push({
      queue,
      priority,
      after: toTimestamp(runAtMs),
      after_id: id,
      floor: toTimestamp(range.floorMs),
      end: toTimestamp(range.endMs)
    });
  }
  return ranges;
}
function toTimestamp(ms) {
  if (!Number.isFinite(ms)) return ms < 0 ? "-infinity" : "infinity";
  const us = Math.round(ms * 1e3);
  const wholeMs = Math.floor(us / 1e3);
  return new Date(wholeMs).toISOString().replace("Z", `${String(us - wholeMs * 1e3).padStart(3, "0")}Z`);
}
function toPlace(row) {
  return { priority: Number(row.priority), runAtMs: Number(row.run_at), id: Number(row.id) };
}
function inClaimOrder2(a, b2) {
  return a.priority - b2.priority || a.runAtMs - b2.runAtMs || a.id - b2.id;
}

// src/worker/claim/overlooked-jobs.ts
var MAX_KEPT = 25e3;
var OverlookedJobs = class {
  #places = /* @__PURE__ */ new Map();
  #sorted = true;
  get size() {
    return this.#places.size;
  }
  /** Keeps them; returns whether there was room for all. */
  add(places) {
    for (const place of places) {
      if (this.#places.size >= MAX_KEPT) return false;
      if (this.#places.has(place.id)) continue;
      this.#places.set(place.id, place);
      this.#sorted = false;
    }
    return true;
  }
  /** Whether one is to be claimed now. */
  has(maxPriority) {
    const [first] = this.#inOrder();
    return first !== void 0 && first.priority <= maxPriority;
  }
  /** Takes out the next `limit` in claim order, up to a priority. */
  take(limit, maxPriority) {
    const taken = [];
    for (const place of this.#inOrder()) {
      if (taken.length >= limit || place.priority > maxPriority) break;
      taken.push(place);
    }
    for (const { id } of taken) this.#places.delete(id);
    return taken;
  }
  #inOrder() {
    if (!this.#sorted) {
      const places = [...this.#places.values()].sort(inClaimOrder2);
      this.#places.clear();
      for (const place of places) this.#places.set(place.id, place);
      this.#sorted = true;
    }
    return this.#places.values();
  }
};

// src/worker/claim/claims.ts
var Claims = class {
  #options;
  bands = new Bands();
  overlooked = new OverlookedJobs();
  /** The next ones in order have their turn now. */
  #tookOverlooked = false;
  constructor(options) {
    this.#options = options;
  }
  /** @throws what the driver throws; then the server may have carried the claim out all the same */
  async next(demand, beginning) {
    const { runner, tables: tables2, queue, workerId, kinds } = this.#options;
    const startMs = performance.now();
    const places = this.#tookOverlooked ? [] : this.overlooked.take(demand, this.bands.busyPriority);
    const among2 = places.length > 0;
    this.#tookOverlooked = among2;
    const limit = among2 ? places.length : demand;
    const bands = this.bands.all;
    const ordered = among2 && typeof beginning === "object" ? 0 : beginning;
    const claim = { queue, workerId, kinds, bands, limit, beginning: ordered, fromGoneWorkers: among2 };
    const ids = among2 ? places.map(({ id }) => id) : void 0;
    const jobs = await claimJobs(runner, tables2, { ...claim, ids }).catch((error) => {
      this.overlooked.add(places);
      throw error;
    });
    const endMs = performance.now();
    const short = sawTheEnd(limit, jobs);
    if (!among2) this.bands.note({ jobs, short, startMs, endMs });
    else if (!short) this.#addRest(places, jobs);
    return { jobs, among: among2, endMs };
  }
  /** Keeps those that were not claimed: the payloads were too large for one claim. */
  #addRest(places, jobs) {
    const claimed = new Set(jobs.map(({ id }) => id));
    this.overlooked.add(places.filter(({ id }) => !claimed.has(id)));
  }
};

// src/queries/find-held-jobs.ts
init_executor();
import { sql as sql55 } from "drizzle-orm";
async function findHeldJobs(db, tables2, holder, jobs) {
  const rows = await queryRows(db, tables2, findHeldJobsQuery(tables2, holder, jobs));
  return new Map(rows.map((row) => [Number(row.id), Number(row.fence)]));
}
function findHeldJobsQuery({ queueJobs: queueJobs2 }, holder, jobs) {
  return sql55`
    with i as materialized (select id, fence from rows from (${idsAndFences(jobs)}) as r(id, fence))
    select j.id, j.fence from ${queueJobs2} as j where ${stillHeld(holder)}`;
}

// src/queries/release-jobs.ts
init_executor();
import { sql as sql56 } from "drizzle-orm";
async function releaseJobs(db, tables2, release) {
  const rows = await queryRows(db, tables2, releaseJobsQuery(tables2, release));
  return rows.length;
}
function releaseJobsQuery(tables2, release) {
  return endHolds(tables2, {
    change: { set: sql56`attempt = j.attempt - 1` },
    where: sql56`j.queue = ${release.queue} and j.worker_id = ${release.workerId}
      and not exists (
        select from rows from (${idsAndFences(release.except)}) as i(id, fence)
        where i.id = j.id and i.fence = j.fence)`,
    returning: sql56`j.id`
  });
}

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

// src/worker/claim/holdings.ts
var Holdings = class {
  #options;
  #lostAnswers = new LostAnswers();
  /** How often this worker was declared gone and came back. */
  #returns = 0;
  constructor(options) {
    this.#options = options;
  }
  /** Waits for the result of a claim; returns with it whether the worker was declared gone meanwhile. */
  async answerTo(claim) {
    const returns = this.#returns;
    const answer2 = await this.#lostAnswers.answerTo(claim);
    return { answer: answer2, wasGone: this.#returns !== returns };
  }
  /** To be called before a claim: an earlier one may have taken jobs, and its answer may have been lost. */
  async releaseUnknown(nowMs) {
    if (!this.#lostAnswers.releaseIsDue(nowMs)) return;
    await this.#release();
    this.#lostAnswers.noteRelease(nowMs);
  }
  /** Gives back what is held at the very end; reads the whole queue only if a claim's answer was lost. */
  async giveBack(tooLate) {
    await this.#options.attempts.giveBackUnwritten(this.#options, tooLate);
    if (tooLate.aborted) return;
    if (this.#lostAnswers.suspected(performance.now())) await this.#release();
  }
  /** Ends the attempts whose jobs are no longer held, after this worker was declared gone for a while. */
  async endLost() {
    this.#returns++;
    const { db, tables: tables2, holder, attempts } = this.#options;
    const { unfinished } = attempts;
    if (unfinished.length === 0) return;
    const jobs = unfinished.map(({ job }) => job);
    attempts.endLost(unfinished, await findHeldJobs(db, tables2, holder, jobs));
  }
  async #release() {
    const { db, tables: tables2, holder, attempts } = this.#options;
    await releaseJobs(db, tables2, { ...holder, except: attempts.jobs });
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
  quietMs(nowMs) {
    return nowMs - this.#lastMs;
  }
  /** How long to wait before the next look; `undefined` when the queue is no longer hot. */
  gapMs(nowMs) {
    const sinceMs = this.quietMs(nowMs);
    if (sinceMs >= HOT_MS) return void 0;
    return Math.min(Math.max(sinceMs / GAP_SHARE, MIN_GAP_MS), this.#maxGapMs);
  }
};

// src/worker/claim/pace.ts
var Pace = class {
  #hotPolling;
  #untilEmpty;
  #pollIntervalMs;
  #eventful = true;
  /** A whole pass was made and no job was claimed since. */
  #swept = false;
  /** @param untilEmpty whether the loop ends when no job is left, instead of waiting to be woken */
  constructor(hotPolling, options) {
    this.#hotPolling = hotPolling;
    this.#untilEmpty = options.untilEmpty;
    this.#pollIntervalMs = options.pollIntervalMs;
  }
  /** A notification has come: others may follow that do not notify. */
  noteTold(nowMs) {
    this.#eventful = true;
    this.#hotPolling.note(nowMs);
  }
  noteSwept() {
    this.#swept = true;
  }
  after({ demand, claimed, among: among2, quiet, nowMs }) {
    if (claimed > 0) {
      this.#eventful = true;
      this.#swept = false;
      this.#hotPolling.note(nowMs);
    }
    if (among2 || claimed >= demand) return "claim";
    if (this.#untilEmpty) {
      if (claimed > 0 || !quiet) return { rest: "ms", ms: this.#pollIntervalMs };
      return this.#swept ? "over" : "sweep";
    }
    const ms = this.#hotPolling.gapMs(nowMs);
    if (ms !== void 0) return { rest: "ms", ms };
    const anew = this.#eventful;
    this.#eventful = false;
    return { rest: "until woken", anew };
  }
};

// src/worker/claim/sweep.ts
var SHARE = 20;
var END_SHARE = 4;
var END_MS = 50;
var MAX_PAUSE_MS = 5e3;
var MIN_PAUSE_MS = 10;
var QUIET_SHARE = 10;
var MAX_QUIET_PAUSE_MS = 1e3;
var BACKLOG_PAUSE_MS = 100;
var URGENT_SPANS_MS = [6e4, 36e5, void 0];
var Sweep = class {
  #after;
  /** What is left of an urgent pass. */
  #spansMs = [];
  /** The pass was begun anew while a slice was under way, whose end says nothing about it. */
  #anew = false;
  #tookMs = 0;
  #lastTookMs = Number.POSITIVE_INFINITY;
  #endMs = Number.NEGATIVE_INFINITY;
  #found = false;
  /** Where the next slice begins; `undefined`: at the very start. */
  get after() {
    return this.#after;
  }
  /** How far before the floors the pass begins; `undefined`: at the very start. */
  get spanMs() {
    return this.#spansMs[0];
  }
  /** Whether a pass goes on to its end without sleeping. */
  get urgent() {
    return this.#spansMs.length > 0;
  }
  get found() {
    return this.#found;
  }
  /** Whether the last slice ended a pass, and no other is asked for. */
  get ended() {
    return this.#after === void 0 && !this.urgent;
  }
  /** Goes through the whole queue without sleeping; once, or with the newest jobs first. */
  urge(first) {
    this.#spansMs = first === void 0 ? [void 0] : URGENT_SPANS_MS;
    this.#after = void 0;
    this.#anew = true;
  }
  /** A slice is read from here on. */
  begin() {
    this.#anew = false;
  }
  /**
   * When the next slice is due, by the clock of the reports.
   * @param quietMs how long ago the last job came, or was told of
   * @param idleMs how often to begin a pass when that is long ago
   * @param backlog whether more jobs are due than claims can take: then a late one waits its turn anyway
   */
  dueMs(quietMs, idleMs, backlog) {
    if (this.urgent) return this.#endMs;
    const tookMs = this.#tookMs;
    const quietPauseMs = Math.max(quietMs / QUIET_SHARE, MIN_PAUSE_MS);
    const after = (restMs, pauseMs) => this.#endMs + Math.max(Math.min(restMs, MAX_PAUSE_MS), pauseMs);
    if (this.#after === void 0 && backlog) return after(tookMs * SHARE, BACKLOG_PAUSE_MS);
    if (this.#after === void 0)
      return after(Math.max(tookMs * END_SHARE, (tookMs - END_MS) * SHARE), Math.min(quietPauseMs, idleMs));
    if (this.#found) return after(0, MIN_PAUSE_MS);
    return after(tookMs * SHARE, Math.min(quietPauseMs, MAX_QUIET_PAUSE_MS));
  }
  note({ after, found: found2, startMs, endMs }) {
    this.#found = found2 > 0;
    this.#tookMs = Math.min(endMs - startMs, this.#lastTookMs);
    this.#lastTookMs = endMs - startMs;
    this.#endMs = endMs;
    if (this.#anew) return;
    this.#after = after;
    if (after === void 0) this.#spansMs = this.#spansMs.slice(1);
  }
};

// src/worker/claim/claim-loop.ts
var MAX_ERROR_PAUSE_MS = 5e3;
var MAX_EXPECTED_MS = 2e3;
var ClaimLoop = class {
  #options;
  sweep = new Sweep();
  #claims;
  attempts;
  holdings;
  #hotPolling;
  #pace;
  /** A slot is free, an outcome is written, the loop is stopped, or its queue is paused or resumed. */
  #changes = new Condition();
  #stopping = new AbortController();
  /** Rings when there may be something to claim. */
  #alarm = new Condition();
  /** Whether the queue was announced idle, and no job was found since. */
  #announced = false;
  /** The loop rests until it is woken, or in a drain until its next poll. */
  #atRest = false;
  #begun = false;
  #mayClaim = false;
  constructor(options) {
    this.#options = options;
    const { environment, runner, queue, handlers, concurrency, pollIntervalMs, watch, events } = options;
    const { workerId, tables: tables2 } = environment;
    const holder = { queue, workerId };
    this.#claims = new Claims({ runner, tables: tables2, queue, workerId, kinds: [...handlers.keys()] });
    this.#hotPolling = new HotPolling(pollIntervalMs);
    this.#pace = new Pace(this.#hotPolling, { untilEmpty: watch === void 0, pollIntervalMs });
    this.attempts = new Attempts({
      environment,
      handlers,
      concurrency,
      // A drain has to end.
      persistent: options.watch !== void 0,
      runner,
      holder,
      retries: options.retries,
      settler: new Settler({ ...options, ...environment, db: runner, holder }),
      events,
      onChange: () => {
        this.#changes.signal();
        this.#lookAfterLast();
      },
      onPutBack: (job, delayMs) => this.#expectAgain(job, delayMs)
    });
    this.holdings = new Holdings({ ...options, ...environment, holder, attempts: this.attempts });
  }
  get queue() {
    return this.#options.queue;
  }
  get bands() {
    return this.#claims.bands;
  }
  get overlooked() {
    return this.#claims.overlooked;
  }
  get quietMs() {
    return this.#hotPolling.quietMs(performance.now());
  }
  wake() {
    this.#alarm.signal();
  }
  /** Claims at once, and stays hot: others may follow that do not notify. */
  notify() {
    this.#pace.noteTold(performance.now());
    this.#options.sweeper.awaken(this);
    this.#alarm.signal();
  }
  /** Looks without delay for jobs that have become due behind the floors. */
  sweepSoon() {
    this.sweep.urge("newest first");
    this.#options.sweeper.awaken(this);
  }
  noteNothing(databaseMs, endMs) {
    this.bands.noteNothing(databaseMs, endMs);
    if (!this.#mayClaim) return;
    this.#sweepFirst();
    if (this.attempts.size === 0) this.#announceIdle();
  }
  /**
   * Claims until `stop` is called (or nothing is left, without a watch); returns how many jobs. Before
   * `mayClaim` is fulfilled it only looks at the queue. Never rejects.
   */
  async run(mayClaim) {
    const { queue, pollIntervalMs, events, watch, retries } = this.#options;
    let failures = 0;
    let total = 0;
    watch?.add(this, true);
    await mayClaim;
    this.#mayClaim = true;
    if (!this.#alarm.signalled) watch?.add(this, true);
    if (watch !== void 0) await this.#alarm.wait();
    watch?.remove(this);
    while (!this.#stopping.signal.aborted) {
      const { demand } = this.attempts;
      if (demand <= 0) {
        if (watch === void 0 && this.attempts.paused && this.attempts.size === 0) return total;
        await this.#changes.wait();
        continue;
      }
      this.#alarm.clear();
      try {
        const { claimed, next } = await this.#claim(demand);
        total += claimed;
        failures = 0;
        if (next === "over") return total;
        await this.#proceed(next);
      } catch (error) {
        events.emit("error", { error, during: `claiming from '${queue}'` });
        const pauseMs = Math.min(pollIntervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS);
        if (await retries.sleep(jitter(pauseMs), this.#stopping.signal)) failures = 0;
      }
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
  interrupt(reason) {
    this.attempts.interrupt(reason);
  }
  async #claim(demand) {
    const { queue, events, sweeper } = this.#options;
    const startMs = performance.now();
    await this.holdings.releaseUnknown(startMs);
    if (this.#stopping.signal.aborted) return { claimed: 0, next: "claim" };
    const quiet = this.attempts.size === 0;
    const claim = this.#claims.next(demand, this.attempts.beginning);
    const { answer: answer2, wasGone } = await this.holdings.answerTo(claim);
    const { jobs, among: among2, endMs } = answer2;
    const next = this.#pace.after({ demand, claimed: jobs.length, among: among2, quiet, nowMs: endMs });
    if (jobs.length > 0) {
      this.#announced = false;
      this.#sweepFirst();
      events.emit("claimed", { queue, count: jobs.length, durationMs: endMs - startMs });
      sweeper.awaken(this);
    }
    this.attempts.add(jobs);
    if (wasGone && jobs.length > 0) await this.holdings.endLost();
    if (quiet && !among2 && jobs.length === 0) this.#announceIdle();
    return { claimed: jobs.length, next };
  }
  /** Sleeps until another claim is worth its statement. */
  async #proceed(next) {
    if (next === "claim") return;
    if (next === "sweep") {
      if (await this.#options.sweeper.sweepNow(this, this.#stopping.signal)) this.#pace.noteSwept();
    } else if (next.rest === "until woken") await this.#rest(next.anew);
    else if (this.#options.watch === void 0) await this.#rest(false, next.ms);
    else await this.#alarm.wait(next.ms);
  }
  /** Sleeps until the watch, a notification or the end of the last job; without a watch, at most `ms`. */
  async #rest(anew, ms = Number.POSITIVE_INFINITY) {
    const { watch } = this.#options;
    watch?.add(this, anew);
    this.#atRest = true;
    this.#lookAfterLast();
    await this.#alarm.wait(ms);
    this.#atRest = false;
    watch?.remove(this);
  }
  /** Claims again after the end of the last job: that may have left one, and if not, the queue is idle. */
  #lookAfterLast() {
    if (this.#atRest && !this.#announced && this.attempts.size === 0) this.wake();
  }
  /** No claim sees what was held by workers that died before this one began. */
  #sweepFirst() {
    if (this.#begun) return;
    this.#begun = true;
    this.sweep.urge();
    this.#options.sweeper.awaken(this);
  }
  #announceIdle() {
    if (!this.#announced) this.#options.events.emit("idle", { queue: this.queue });
    this.#announced = true;
  }
  /** Nobody notifies this worker of what it puts back itself. */
  #expectAgain({ id, priority, runAt }, delayMs) {
    if (this.#stopping.signal.aborted) return;
    if (delayMs !== void 0) {
      if (delayMs <= MAX_EXPECTED_MS) this.#options.watch?.expect(this, delayMs);
      return;
    }
    if (!this.overlooked.add([{ id, priority, runAtMs: runAt.getTime() }])) this.sweepSoon();
    this.wake();
  }
};

// src/worker/claim/sweeper.ts
var SLICE = 2e4;
var FOUND_SLICE = 2e3;
var MAX_QUEUES3 = 100;
var ENOUGH = 1e3;
var WAIT_MS = 10;
var IDLE_SHARE = 20;
var EVERYTHING = new Array(MAX_PRIORITY + 1).fill({
  floorMs: Number.POSITIVE_INFINITY,
  endMs: Number.POSITIVE_INFINITY
});
var FIRST_RETRY_MS3 = 250;
var MAX_RETRY_MS3 = 5e3;
var Sweeper = class {
  #options;
  #alarm = new Condition();
  /** Those where jobs come, or whose pass is not over. */
  #awake = /* @__PURE__ */ new Set();
  #queues = [];
  /** What is left of the round through all queues. */
  #round = [];
  #nextRoundMs = Number.NEGATIVE_INFINITY;
  #nextIdleMs = Number.NEGATIVE_INFINITY;
  constructor(options) {
    this.#options = options;
  }
  /** Names the queues, before it runs. */
  serve(queues) {
    this.#queues = queues;
  }
  /** Jobs come in this queue, or its sweep is urgent. */
  awaken(queue) {
    if (this.#awake.has(queue) && !queue.sweep.urgent) return;
    this.#awake.add(queue);
    this.#alarm.signal();
  }
  async run(signal) {
    const { events, retries } = this.#options;
    this.#nextRoundMs = performance.now() + jitter(this.#options.idleMs());
    let failures = 0;
    while (!signal.aborted) {
      this.#alarm.clear();
      const nowMs = performance.now();
      const batch = this.#next(nowMs);
      if (batch.length === 0) {
        await this.#alarm.wait(Math.max(this.#nextMs(nowMs) - nowMs, 1), signal);
        continue;
      }
      const ofRound = batch.every((queue) => !this.#awake.has(queue));
      try {
        await this.#sweep(batch);
        failures = 0;
        const endMs = performance.now();
        if (ofRound) this.#nextIdleMs = endMs + (endMs - nowMs) * IDLE_SHARE;
      } catch (error) {
        events.emit("error", { error, during: "sweeping" });
        const pauseMs = Math.min(FIRST_RETRY_MS3 * 2 ** failures++, MAX_RETRY_MS3);
        if (await retries.sleep(jitter(pauseMs), signal)) failures = 0;
      }
    }
  }
  /** For a drain: sweeps one queue until enough is found, or to its end; returns whether it got there. */
  async sweepNow(queue, signal) {
    queue.sweep.urge();
    while (!signal.aborted && queue.overlooked.size < ENOUGH) {
      await this.#sweep([queue], EVERYTHING);
      if (queue.sweep.ended) return true;
    }
    return false;
  }
  /** What to read now: the queues that are awake, or else the next idle ones. */
  #next(nowMs) {
    const due = [...this.#awake].filter((queue) => this.#dueMs(queue, nowMs) <= nowMs).slice(0, MAX_QUEUES3);
    if (due.length > 0) return due;
    if (nowMs < this.#nextIdleMs) return [];
    if (this.#round.length === 0 && nowMs >= this.#nextRoundMs) {
      this.#round = this.#queues.filter((queue) => !this.#awake.has(queue) && !queue.attempts.paused).reverse();
      this.#nextRoundMs = nowMs + jitter(this.#options.idleMs());
    }
    return this.#round.splice(-MAX_QUEUES3).reverse();
  }
  #nextMs(nowMs) {
    const idleMs = this.#round.length > 0 ? this.#nextIdleMs : Math.max(this.#nextRoundMs, this.#nextIdleMs);
    return Math.min(idleMs, ...[...this.#awake].map((queue) => this.#dueMs(queue, nowMs)));
  }
  #dueMs({ sweep, overlooked, bands, quietMs, attempts }, nowMs) {
    if (attempts.paused || overlooked.size >= ENOUGH) return nowMs + WAIT_MS;
    return sweep.dueMs(quietMs, this.#options.idleMs(), bands.backlog);
  }
  async #sweep(batch, all) {
    const { runner, tables: tables2, workerId, kinds } = this.#options;
    const startMs = performance.now();
    for (const { sweep } of batch) sweep.begin();
    const { found: found2, stopped } = await findOverlooked(runner, tables2, {
      looks: batch.map(({ queue, bands, sweep }) => ({
        queue,
        passed: all ?? bands.passed,
        spanMs: sweep.spanMs,
        after: sweep.after
      })),
      kinds,
      workerId,
      slice: batch.some(({ sweep }) => sweep.found) ? FOUND_SLICE : SLICE
    });
    const endMs = performance.now();
    const idleMs = this.#options.idleMs();
    for (const queue of batch) {
      const after = stopped?.queue === queue.queue ? stopped.after : void 0;
      const places = found2.get(queue.queue) ?? [];
      queue.overlooked.add(places);
      queue.sweep.note({ after, found: places.length, startMs, endMs });
      if (places.length > 0) queue.wake();
      const idle = queue.sweep.dueMs(queue.quietMs, idleMs, false) >= endMs + idleMs;
      if (!idle || !queue.sweep.ended) this.#awake.add(queue);
      else this.#awake.delete(queue);
      if (after !== void 0) break;
    }
    if (stopped === void 0) return;
    const at = batch.findIndex(({ queue }) => queue === stopped.queue);
    this.#round.push(
      ...batch.slice(at + 1).filter((queue) => !this.#awake.has(queue)).reverse()
    );
  }
};

// src/queries/find-due.ts
import { sql as sql57 } from "drizzle-orm";
init_executor();
async function findDue(runner, tables2, question) {
  const rows = [];
  for (const looks of perStatement(tables2, question.looks)) {
    rows.push(...await queryRows(runner, tables2, findDueQuery(tables2, { ...question, looks })));
  }
  return rows.map((row) => ({
    queue: String(row.queue),
    dueInMs: row.due_at === null ? void 0 : Number(row.due_at) - Number(row.now),
    nowMs: Number(row.now)
  }));
}
var MANY_QUEUES = 100;
function findDueQuery({ queueJobs: queueJobs2 }, question) {
  const priorities = sql57`generate_series(0, ${sql57.raw(String(MAX_PRIORITY))}) as band(priority)`;
  const inUse = sql57`(
      select p.priority from generate_series(0, ${sql57.raw(String(MAX_PRIORITY))}) as p(priority)
      cross join lateral (
        select from ${queueJobs2} as j where j.priority = p.priority::int2 and j.group_key is null
        order by j.queue, j.run_at, j.id limit 1
      ) as j
      offset 0
    ) as band`;
  return sql57`
    select i.queue, min(${epochMs("j.run_at")}) as due_at, ${epochMs("statement_timestamp()")} as now
    from ${planAnew()}
    cross join jsonb_to_recordset(${JSON.stringify(question.looks.map(toLookRow))}::text::jsonb)
      as i(queue text, floor timestamptz)
    ${question.looks.length > MANY_QUEUES ? sql57`left join ${inUse} on true` : sql57`cross join ${priorities}`}
    left join lateral (
      select j.run_at from ${queueJobs2} as j
      where j.queue = ${queueOf(question.looks, "i.queue")}
        and j.priority = band.priority::int2 and j.group_key is null and j.run_at >= i.floor
        and j.run_at <= statement_timestamp() + ${question.horizonMs}::float8 * interval '1 millisecond'
        and j.worker_id is null and ${servedKind(question.kinds)}
      order by j.run_at, j.id limit 1
    ) as j on true
    group by i.queue`;
}
function toLookRow({ queue, floorMs }) {
  return { queue, floor: Number.isFinite(floorMs) ? new Date(floorMs).toISOString() : "-infinity" };
}

// src/worker/claim/alarms.ts
var GRAIN_MS = 8;
var Alarms = class {
  #ring;
  /** Of the monotonic clock. */
  #timesMs = /* @__PURE__ */ new Set();
  #timer;
  #nextMs = Number.POSITIVE_INFINITY;
  constructor(ring) {
    this.#ring = ring;
  }
  /** Rings in this many milliseconds, or a few later. */
  add(inMs) {
    const atMs = Math.ceil((performance.now() + inMs + 1) / GRAIN_MS) * GRAIN_MS;
    this.#timesMs.add(atMs);
    if (atMs < this.#nextMs) this.#set(atMs);
  }
  clear() {
    clearTimeout(this.#timer);
    this.#timesMs.clear();
    this.#nextMs = Number.POSITIVE_INFINITY;
  }
  #set(atMs) {
    clearTimeout(this.#timer);
    this.#nextMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    const inMs = Math.max(Math.ceil(atMs - performance.now()), 0);
    this.#timer = setTimeout(() => this.#go(), Math.min(inMs, MAX_TIMER_MS));
  }
  #go() {
    const nowMs = performance.now();
    let rings = false;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const atMs of this.#timesMs) {
      if (atMs > nowMs) {
        nextMs = Math.min(nextMs, atMs);
      } else {
        this.#timesMs.delete(atMs);
        rings = true;
      }
    }
    this.#set(nextMs);
    if (rings) this.#ring();
  }
};

// src/worker/claim/watch.ts
var GATHER_MS = 10;
var MAX_LOOKS = 1e3;
var MANY = 100;
var SHARE2 = 5;
var MAX_ERROR_PAUSE_MS2 = 5e3;
var Watch = class {
  #options;
  #idle = /* @__PURE__ */ new Set();
  #alarms = /* @__PURE__ */ new Map();
  #alarm = new Condition();
  /** Idle for a moment only, and not looked at since. */
  #anew = /* @__PURE__ */ new Set();
  /** How long the last look at all idle queues took, and when the next one is due. */
  #tookMs = 0;
  #nextMs = Number.NEGATIVE_INFINITY;
  #over = false;
  constructor(options) {
    this.#options = options;
  }
  /**
   * Watches a queue until something may be due in it; without delay if it was busy (`anew`). One woken in
   * vain is not: what made it look due (a job that is locked by an open transaction, say) would do so again.
   */
  add(idle, anew) {
    this.#idle.add(idle);
    if (!anew) return;
    this.#anew.add(idle);
    this.#alarm.signal();
  }
  remove(idle) {
    this.#idle.delete(idle);
    this.#anew.delete(idle);
  }
  /** Looks now: the interval has changed. */
  look() {
    this.#nextMs = Number.NEGATIVE_INFINITY;
    this.#alarm.signal();
  }
  /** Wakes a queue in `inMs` milliseconds, when one of its jobs is known to be due; every call counts. */
  expect(idle, inMs) {
    if (this.#over) return;
    const alarms = this.#alarms.get(idle) ?? new Alarms(() => idle.wake());
    this.#alarms.set(idle, alarms);
    alarms.add(inMs);
  }
  async run(signal) {
    let failures = 0;
    let lookedMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const gatherMs = lookedMs + GATHER_MS - performance.now();
      if (gatherMs > 0) await sleep(gatherMs, signal);
      if (signal.aborted) break;
      this.#alarm.clear();
      const intervalMs = Math.max(this.#options.intervalMs(), this.#tookMs * (SHARE2 - 1));
      let pauseMs = Number.POSITIVE_INFINITY;
      if (this.#idle.size > 0) {
        try {
          await this.#look(intervalMs, signal);
          failures = 0;
          pauseMs = Math.max(this.#nextMs - performance.now(), 0);
        } catch (error) {
          this.#options.events.emit("error", { error, during: "looking for due jobs" });
          this.#nextMs = Number.NEGATIVE_INFINITY;
          pauseMs = jitter(Math.min(intervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS2));
        }
        lookedMs = performance.now();
      }
      await this.#alarm.wait(pauseMs, signal);
    }
    this.#over = true;
    for (const alarms of this.#alarms.values()) alarms.clear();
  }
  /** Looks at all idle queues; of many, in between, only at those that have just become idle. */
  async #look(intervalMs, signal) {
    const startMs = performance.now();
    const all = this.#idle.size <= MANY || startMs >= this.#nextMs;
    const idle = [...all ? this.#idle : this.#anew];
    this.#anew.clear();
    for (let at = 0; at < idle.length && !signal.aborted; at += MAX_LOOKS) {
      await this.#lookAt(idle.slice(at, at + MAX_LOOKS), intervalMs);
    }
    if (!all) return;
    const endMs = performance.now();
    this.#tookMs = endMs - startMs;
    this.#nextMs = endMs + jitter(intervalMs);
  }
  async #lookAt(idle, intervalMs) {
    const { runner, tables: tables2, kinds } = this.#options;
    const byName = new Map(idle.map((queue) => [queue.queue, queue]));
    const answers = await findDue(runner, tables2, {
      looks: idle.map(({ queue, bands }) => ({ queue, floorMs: bands.lowestFloorMs })),
      kinds,
      // What becomes due before the next look, with room for its jitter and for a look that takes longer.
      horizonMs: intervalMs * 2
    });
    const endMs = performance.now();
    for (const answer2 of answers) {
      const queue = byName.get(answer2.queue);
      if (queue !== void 0 && this.#idle.has(queue)) this.#heed(queue, answer2, endMs);
    }
  }
  #heed(queue, { dueInMs, nowMs }, endMs) {
    if (dueInMs !== void 0 && dueInMs <= 0) {
      queue.wake();
      return;
    }
    queue.noteNothing(nowMs, endMs);
    if (dueInMs !== void 0) this.expect(queue, dueInMs);
  }
};

// src/worker/presence/listener.ts
init_errors();
var ECHO_MS = 5e3;
var QUIET_MS = 6e4;
var FIRST_RETRY_MS4 = 100;
var MAX_RETRY_MS4 = 6e4;
var Listener = class {
  #options;
  #listening = false;
  /** A notification to itself has come back once: there is no pooler in transaction mode in between. */
  #proven = false;
  /** How often in a row listening has ended, or could not begin. */
  #failures = 0;
  /** The tests that are under way. */
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
      const retryMs = Math.min(FIRST_RETRY_MS4 * 2 ** this.#failures++, MAX_RETRY_MS4);
      await this.#options.retries.sleep(jitter(retryMs), stopping);
    }
  }
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
  /** Sends notifications to itself, at once and whenever it has been quiet, until one does not come back. */
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
init_executor();
import { sql as sql58 } from "drizzle-orm";
async function beatWorker(runner, tables2, worker) {
  const [row] = await queryRows(runner, tables2, beatWorkerQuery(tables2, worker));
  return row?.anew === true;
}
function beatWorkerQuery({ queueWorkers: queueWorkers2 }, { id, name, queues, session = void 0, node = void 0 }) {
  return sql58`
    insert into ${queueWorkers2} as w (id, name, queues, session, node, seen_at) overriding system value
    values (${id}, ${name}, ${JSON.stringify(queues)}::text::jsonb, ${session ?? null}::int4,
      ${node ?? null}::text, statement_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at, session = excluded.session,
      node = excluded.node
    returning (w.xmax = 0) as anew`;
}

// src/queries/check-workers.ts
init_executor();
init_server_facts();
import { sql as sql63 } from "drizzle-orm";

// src/sql/why-gone.ts
import { sql as sql61 } from "drizzle-orm";

// src/sql/session-key.ts
init_quoted_name();
import { sql as sql59 } from "drizzle-orm";
function sessionKey({ queueWorkers: queueWorkers2 }, id) {
  return sql59`hashtextextended(${quotedName(queueWorkers2)}::text::regclass::oid::text, ${id})`;
}

// src/sql/this-node.ts
init_server_facts();
import { sql as sql60 } from "drizzle-orm";
function thisNode(tables2) {
  return isIdentified(tables2) ? sql60`(select c.system_identifier::text from pg_control_system() as c)` : sql60`extract(epoch from pg_postmaster_start_time())::text`;
}

// src/sql/why-gone.ts
var seenText = sql61`extract(epoch from w.seen_at)::text`;
function testedLock(tables2, self) {
  const key = sessionKey(tables2, sql61`w.id`);
  const isSelf = self === void 0 ? sql61`` : sql61`w.id = ${self}::int8 or `;
  return sql61`(
        select case
          when w.node <> ${thisNode(tables2)} then null
          when w.session = pg_backend_pid() then not (${isSelf}${key} = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(${key})
        end as free
      )`;
}
function whyGone({ silentMs, frozenMs, startRespiteMs }) {
  return sql61`case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then ${frozenMs}::float8 else ${silentMs}::float8 end
            * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp()
          - ${startRespiteMs}::float8 * interval '1 millisecond'
        then 'lost'
      end`;
}

// src/queries/find-workers.ts
init_executor();
import { sql as sql62 } from "drizzle-orm";
async function findWorkers(runner, tables2) {
  const rows = await queryRows(runner, tables2, findWorkersQuery(tables2));
  return rows.map(({ id, session, node, started, seen }) => ({
    id: Number(id),
    session: session === null ? null : Number(session),
    node: node === null ? null : String(node),
    started: String(started),
    seen: String(seen)
  }));
}
function findWorkersQuery({ queueWorkers: queueWorkers2 }) {
  return sql62`
    select w.id, w.session, w.node, extract(epoch from w.started_at)::text as started, ${seenText} as seen
    from ${queueWorkers2} as w`;
}
function knownWorkers(workers) {
  return sql62`(
        select k.id, k.session, k.node, to_timestamp(k.started::float8) as started_at,
          to_timestamp(k.seen::float8) as seen_at
        from jsonb_to_recordset(${JSON.stringify(workers)}::text::jsonb)
          as k(id int8, session int4, node text, started text, seen text)
      )`;
}

// src/queries/check-workers.ts
async function checkWorkers(runner, tables2, options) {
  const rows = isDistributed(tables2) ? await checkApart(runner, tables2, options) : await queryRows(runner, tables2, checkWorkersQuery(tables2, options));
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
async function checkApart(runner, tables2, { worker, beat, limits }) {
  const known3 = knownWorkers(await findWorkers(runner, tables2));
  if (beat) await beatWorker(runner, tables2, worker);
  return await queryRows(runner, tables2, checkWorkersQuery(tables2, { worker, beat: false, limits }, known3));
}
function checkWorkersQuery(tables2, { worker, beat, limits }, from = sql63`${tables2.queueWorkers}`) {
  return sql63`
    with ${beat ? sql63`beat as (${beatWorkerQuery(tables2, worker)}
    ),
    ` : sql63``}seen as materialized (
      select w.id, w.session, extract(epoch from w.started_at)::text as started, ${seenText} as seen, l.free,
        ${whyGone(limits)} as why
      from ${from} as w cross join lateral ${testedLock(tables2, worker.id)} as l
    )
    select own.*, pg_backend_pid() as pid, g.id, g.seen, g.why, g.session
    from (
      select count(distinct coalesce(s.session, -s.id)) as workers,
        max(s.started) filter (where s.id = ${worker.id}::int8) as started,
        bool_or(s.free) filter (where s.id = ${worker.id}::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> ${worker.id}::int8`;
}

// src/queries/remove-gone-workers.ts
init_executor();
import { sql as sql64 } from "drizzle-orm";
init_server_facts();
async function removeGoneWorkers(runner, tables2, workers, limits) {
  if (isDistributed(tables2)) return await removeApart(runner, tables2, workers, limits);
  const rows = await queryRows(runner, tables2, removeGoneWorkersQuery(tables2, workers, limits));
  return rows.map(toRemoved);
}
async function removeApart(runner, tables2, workers, limits) {
  const seen = new Map(workers.map((worker) => [worker.id, worker.seen]));
  const unchanged = (await findWorkers(runner, tables2)).filter((row) => seen.get(row.id) === row.seen);
  const tested = await queryRows(runner, tables2, testWorkersQuery(tables2, unchanged, limits));
  const removed = [];
  for (const { id, why } of tested) {
    const seenAt = seen.get(Number(id));
    if (why === null || seenAt === void 0) continue;
    const rows = await queryRows(runner, tables2, removeUnseenWorkerQuery(tables2, Number(id), seenAt));
    removed.push(...rows.map(toRemoved));
  }
  return removed;
}
function toRemoved({ id, name }) {
  return { id: Number(id), name: String(name) };
}
function removeGoneWorkersQuery(tables2, workers, limits) {
  const { queueWorkers: queueWorkers2 } = tables2;
  const seen = workers.map(({ id, seen: seen2 }) => JSON.stringify({ id, seen: seen2 }));
  return sql64`
    with unchanged as materialized (
      select w.id, w.session, w.node, w.seen_at from ${queueWorkers2} as w
      where (w.id, ${seenText}) in (select i.id, i.seen from ${jsonRows(seen, "id int8, seen text")} as i)
      for update skip locked
    ),
    gone as materialized (
      select w.id, ${whyGone(limits)} as why from unchanged as w cross join lateral ${testedLock(tables2)} as l
    )
    delete from ${queueWorkers2} as w
    where w.id = any(array(select g.id from gone as g where g.why is not null))
    returning w.id, w.name`;
}
function testWorkersQuery(tables2, workers, limits) {
  return sql64`
    select w.id, ${whyGone(limits)} as why
    from ${knownWorkers(workers)} as w cross join lateral ${testedLock(tables2)} as l`;
}
function removeUnseenWorkerQuery({ queueWorkers: queueWorkers2 }, id, seen) {
  return sql64`
    delete from ${queueWorkers2} as w where w.id = ${id} and w.seen_at = to_timestamp(${seen}::text::float8)
    returning w.id, w.name`;
}

// src/queries/remove-worker.ts
init_executor();
import { sql as sql65 } from "drizzle-orm";
async function removeWorker(runner, tables2, id) {
  await queryRows(runner, tables2, removeWorkerQuery(tables2, id));
}
function removeWorkerQuery({ queueWorkers: queueWorkers2 }, id) {
  return sql65`delete from ${queueWorkers2} as w where w.id = ${id}`;
}

// src/worker/presence/check-rate.ts
var MS_PER_WORKER = 20;
var FEW = 75;
var MAX_MS = 15e3;
function checkEveryMs(workers) {
  return workers <= FEW ? 0 : Math.min(workers * MS_PER_WORKER, MAX_MS);
}

// src/worker/presence/session.ts
init_errors();

// src/queries/lock-session.ts
init_executor();
import { sql as sql66 } from "drizzle-orm";
var KEEPALIVES = {
  tcp_keepalives_idle: "5",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "10000"
};
async function lockSession(runner, tables2, workerId) {
  const [row] = await queryRows(runner, tables2, lockSessionQuery(tables2, workerId));
  return row?.locked === true ? { pid: Number(row.pid), node: String(row.node) } : void 0;
}
function lockSessionQuery(tables2, workerId) {
  const settings = Object.entries(KEEPALIVES).map(
    ([name, value]) => sql66`set_config(${name}, ${value}, false)`
  );
  return sql66`
    select pg_try_advisory_lock(${sessionKey(tables2, sql66`${workerId}::int8`)}) as locked,
      pg_backend_pid() as pid, ${thisNode(tables2)} as node, ${sql66.join(settings, sql66`, `)}`;
}

// src/queries/unlock-session.ts
init_executor();
import { sql as sql67 } from "drizzle-orm";
async function unlockSession(runner, tables2, workerId) {
  await queryRows(runner, tables2, unlockSessionQuery(tables2, workerId));
}
function unlockSessionQuery(tables2, workerId) {
  return sql67`select pg_advisory_unlock(${sessionKey(tables2, sql67`${workerId}::int8`)})`;
}

// src/worker/presence/session.ts
init_executor();
var FIRST_RETRY_MS5 = 50;
var MAX_RETRY_MS5 = 1e3;
var PROMPT_MS = 1e3;
var PATIENCE_MS = 1e4;
var Session = class {
  #options;
  #connection;
  #held;
  /** The connection that still owes an answer. */
  #asked;
  constructor(options) {
    this.#options = options;
  }
  /** The server's process id for the connection that holds the lock; `undefined` when none is known to. */
  get pid() {
    return this.#connection && this.#held?.pid;
  }
  /** The node that holds the lock. */
  get node() {
    return this.#connection && this.#held?.node;
  }
  /** Takes the lock on this connection and keeps it until the connection is lost. Never rejects. */
  async hold(connection, workerId) {
    const { tables: tables2, events, onChange, onRefused } = this.#options;
    const { runner, signal } = connection;
    let held;
    try {
      for (let retryMs = FIRST_RETRY_MS5; held === void 0; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS5)) {
        held = await lockSession(runner, tables2, workerId);
        if (signal.aborted) break;
        if (held === void 0) await sleep(jitter(retryMs), signal);
      }
    } catch (error) {
      await sleep(MAX_RETRY_MS5, signal);
      if (signal.aborted) return;
      events.emit("error", { error, during: "taking the session lock" });
      onRefused();
      return;
    }
    if (signal.aborted) {
      if (held !== void 0) await this.#unlock(connection, workerId);
      return;
    }
    this.#held = held;
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
  /** The lock was found free by `pid`: unless that is its own, the server has ended the session silently. */
  noteUnlocked(pid) {
    if (pid === this.#held?.pid) return;
    this.#connection?.abandon(new QueueError("The session lock of this worker is no longer held"));
  }
  /** Gives the lock back: others may go on using the connection, and would keep it. */
  async release(workerId) {
    const connection = this.#connection;
    this.#connection = void 0;
    if (connection) await this.#unlock(connection, workerId);
  }
  async #unlock({ runner }, workerId) {
    await unlockSession(runner, this.#options.tables, workerId).catch(() => void 0);
  }
  /** Uses the session's connection; without one, or when it is slow, the pool. Running twice does no harm. */
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
  /** Learns from a check at `nowMs` of any monotonic clock; returns who is to be declared gone now. */
  judge({ workers, gone }, nowMs) {
    this.noteAnswer(nowMs);
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
  /** The database has answered. A long silence before that was this worker's own trouble. */
  noteAnswer(nowMs) {
    const gapMs = nowMs - (this.#lastMs ?? nowMs);
    this.#lastMs = nowMs;
    if (gapMs > MAX_GAP_MS) this.rest(nowMs, gapMs);
  }
  /** Forgets its suspicions, and has none for a while: this worker was itself cut off for `cutOffMs`. */
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
var LONE_HEARTBEAT_MS = 2500;
var MIN_PAUSE_MS2 = 50;
var FIRST_RETRY_MS6 = 250;
var MAX_RETRY_MS6 = 500;
var REPORT_EVERY_MS = 5e3;
var SESSION_WAIT_MS = 5e3;
var REPLACE_MS = 600;
var START_RESPITE_MS = 1e4;
var Liveness = class {
  #options;
  #limits;
  #session;
  #suspicion;
  #alarm = new Condition();
  /** The last look. */
  #looking = Promise.resolve(0);
  /** Tries to take the session lock that have not ended. */
  #holding = /* @__PURE__ */ new Set();
  #left = false;
  /** How often a session was taken or lost. */
  #changes = 0;
  /** When the worker last showed itself, and after how many of these changes. */
  #shown = { atMs: performance.now(), changes: 0 };
  /** When it last lost its session. */
  #lostMs = Number.NEGATIVE_INFINITY;
  /** When it was registered, by the database's clock. */
  #startedAt;
  /** It was declared gone, and has not yet looked what it has lost. */
  #wasGone = false;
  /** Until then it only says that it is alive. */
  #nextCheckMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;
  /** Whether a session may still come before the first claim. */
  #expectsSession = true;
  #markReady = () => void 0;
  /**
   * Fulfilled when the worker may claim: it has looked who is gone, and its row shows its session, if any;
   * else its jobs would wait half a minute if it died now. After a few seconds it is fulfilled anyway.
   */
  ready = new Promise((resolve) => {
    this.#markReady = resolve;
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
        if (this.#session.pid === void 0) this.#lostMs = performance.now();
        this.#changes++;
        this.#alarm.signal();
      },
      onRefused: () => this.expectNoSession()
    });
  }
  /** Holds the session on this connection: notifications arrive on it, so it is this worker's own. */
  holdSession(connection) {
    const holding = this.#session.hold(connection, this.#options.workerId).finally(() => this.#holding.delete(holding));
    this.#holding.add(holding);
  }
  expectNoSession() {
    this.#expectsSession = false;
    this.#alarm.signal();
  }
  async run(signal) {
    const latest = setTimeout(this.#markReady, SESSION_WAIT_MS);
    let sleepMs = SESSION_WAIT_MS;
    let share = Math.random();
    for (; ; ) {
      await this.#alarm.wait(sleepMs, signal);
      if (signal.aborted || this.#left) break;
      sleepMs = share * await this.look();
      share = 1;
    }
    clearTimeout(latest);
    await Promise.all(this.#holding);
  }
  /** Removes the worker's row. It looks no more, or its next beat would bring the row back. */
  async leave() {
    this.#left = true;
    this.#alarm.signal();
    await this.#looking;
    await removeWorker(this.#session.runner, this.#options.tables, this.#options.workerId);
    await this.#session.release(this.#options.workerId);
  }
  /** Looks who is gone, and shows that this worker lives. Never rejects; returns the ms to the next look. */
  look() {
    this.#looking = this.#checked();
    return this.#looking;
  }
  async #checked() {
    const { events, onReturn } = this.#options;
    this.#alarm.clear();
    try {
      await this.#check();
    } catch (error) {
      const nowMs2 = performance.now();
      if (nowMs2 - this.#reportedMs >= REPORT_EVERY_MS) {
        this.#reportedMs = nowMs2;
        events.emit("error", { error, during: "the heartbeat" });
      }
      return Math.min(FIRST_RETRY_MS6 * 2 ** this.#failures++, MAX_RETRY_MS6);
    }
    if (this.#shown.changes > 0 || !this.#expectsSession) this.#markReady();
    if (this.#failures > 0) onReturn();
    this.#failures = 0;
    this.#reportedMs = Number.NEGATIVE_INFINITY;
    const nowMs = performance.now();
    const sleepMs = Math.min(CHECK_MS, this.#suspicion.inMs(nowMs), this.#replacingMs(nowMs) || CHECK_MS);
    return Math.max(sleepMs, MIN_PAUSE_MS2);
  }
  async #check() {
    const { tables: tables2, workerId: id, name, queues, onDeclaredGone } = this.#options;
    const { runner, pid: session, node } = this.#session;
    const worker = { id, name, queues, session, node };
    const atMs = performance.now();
    const changes = this.#changes;
    const lone = atMs < this.#nextCheckMs;
    const heartbeatMs = lone ? LONE_HEARTBEAT_MS : HEARTBEAT_MS;
    const news = changes !== this.#shown.changes || atMs - this.#shown.atMs >= heartbeatMs;
    const beat = news && this.#replacingMs(atMs) === 0;
    if (lone && !beat) return;
    if (lone && await beatWorker(runner, tables2, worker)) this.#nextCheckMs = atMs;
    const check4 = atMs < this.#nextCheckMs ? void 0 : await checkWorkers(runner, tables2, { worker, beat, limits: this.#limits });
    if (beat) this.#shown = { atMs, changes };
    if (check4 === void 0) return this.#suspicion.noteAnswer(performance.now());
    if (check4.unlocked) this.#session.noteUnlocked(check4.pid);
    this.#wasGone ||= check4.startedAt === void 0 || check4.startedAt !== (this.#startedAt ?? check4.startedAt);
    this.#startedAt = check4.startedAt;
    if (!beat && check4.startedAt === void 0) await beatWorker(runner, tables2, worker);
    if (this.#wasGone) {
      await faultPoint("liveness: returned");
      await onDeclaredGone();
    }
    this.#wasGone = false;
    const nowMs = performance.now();
    const condemned = this.#suspicion.judge(check4, nowMs);
    this.#nextCheckMs = nowMs + Math.min(checkEveryMs(check4.workers), this.#suspicion.inMs(nowMs));
    if (condemned.length === 0) return;
    await faultPoint("liveness: checked");
    this.#announce(await removeGoneWorkers(runner, tables2, condemned, this.#limits));
  }
  /**
   * For how many milliseconds yet another session may replace a lost one before the row says that there is
   * none: a worker that dies meanwhile is found by the session in its row, or else only after `silentMs`.
   */
  #replacingMs(nowMs) {
    if (this.#session.pid !== void 0) return 0;
    return Math.max(this.#lostMs + REPLACE_MS - nowMs, 0);
  }
  #announce(removed) {
    if (removed.length > 0) this.#options.onOthersGone();
    for (const { id, name } of removed) this.#options.events.emit("gone", { workerId: id, name });
  }
};

// src/worker/time/retries.ts
var Retries = class {
  #sleeps = /* @__PURE__ */ new Set();
  /** Sleeps `ms` milliseconds, or until aborted; returns whether a try is worthwhile. Never rejects. */
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

// src/queries/declare-schedules.ts
import { sql as sql68 } from "drizzle-orm";
init_schedule_tables();
async function declareSchedules(db, tables2, declaration) {
  const [row] = await queryScheduleRows(db, tables2, declareSchedulesQuery(tables2, declaration));
  return Number(row?.written) === Number(row?.wanted);
}
function declareSchedulesQuery(tables2, { workerId, schedules }) {
  const { queueSchedules, queueWorkers: queueWorkers2 } = tables2;
  return sql68`
    with i as materialized (
      select i.name, i.queue, i.kind, coalesce(i.payload, 'null'::jsonb) as payload, i.settings, i.cron,
        i.every_ms, i.time_zone, i.catch_up, i.overlap, to_timestamp(i.starts_at_ms / 1000) as starts_at,
        to_timestamp(i.ends_at_ms / 1000) as ends_at
      from ${jsonRows(schedules.map(newScheduleRow), NEW_COLUMNS)} as i
    ),
    wanted as materialized (
      select i.*, coalesce(s.revision, 0) as revision,
        (s.name is null or ${ticksAlike("i")} or s.paused_at is not null
          or (s.next_at > statement_timestamp()) is not false) as possible
      from i left join ${queueSchedules} as s
        on s.name = i.name and s.name = any(array(select name from i))${lockPatience(tables2, "briefly")}
      where s.declared_by is null or s.declared_by < ${workerId}::int8
        or not exists (select from ${queueWorkers2} as w where w.id = s.declared_by)
    ),
    written as (
      insert into ${queueSchedules} as s (
        ${SET_COLUMNS}, next_at, passed_at, revision, declared_by, seen_at, created_at
      )
      select ${SET_COLUMNS}, now.at, now.at, w.revision, ${workerId}::int8, now.at, now.at
      from wanted as w cross join (select statement_timestamp() as at) as now
      where w.possible order by w.name
      on conflict (name) do update set ${replaceSchedule}
      where s.revision = excluded.revision
      returning s.name
    )
    select (select count(*) from wanted)::float8 as wanted,
      (select count(*) from written)::float8 as written`;
}

// src/queries/find-due-schedules.ts
import { sql as sql69 } from "drizzle-orm";
init_schedule_tables();
async function findDueSchedules(db, tables2, question) {
  const rows = await queryScheduleRows(db, tables2, findDueSchedulesQuery(tables2, question));
  return rows.map((row) => ({
    ...toStoredTiming(row),
    dueInMs: Number(row.next_at) - Number(row.now_ms),
    nowMs: Math.floor(Number(row.now_ms))
  }));
}
function findDueSchedulesQuery({ queueSchedules }, { declared, kinds, except, horizonMs, limit }) {
  return sql69`
    select ${timingColumns}, ${epochMs("statement_timestamp()")} as now_ms
    from ${queueSchedules} as s
    where s.paused_at is null
      and s.next_at <= statement_timestamp() + ${horizonMs}::float8 * interval '1 millisecond'
      and (case when s.declared_by is null then s.kind in (${names(kinds)})
        else s.name in (${names(declared)}) end) is true
      and (s.name in (${names(except)})) is not true
    order by s.next_at limit ${limit}`;
}
function names(texts) {
  return sql69`select jsonb_array_elements_text(${JSON.stringify(texts)}::text::jsonb)`;
}

// src/queries/tidy-schedules.ts
init_schedule_tables();
import { sql as sql70 } from "drizzle-orm";
async function tidySchedules(db, tables2, tidying) {
  await queryScheduleRows(db, tables2, tidySchedulesQuery(tables2, tidying));
}
function tidySchedulesQuery({ queueSchedules }, { declared, renewMs, forgetMs }) {
  const age = (ms) => sql70`statement_timestamp() - ${ms}::float8 * interval '1 millisecond'`;
  return sql70`
    with renewable as (
      select s.name from ${queueSchedules} as s
      where s.name in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
        and s.seen_at < ${age(renewMs)}
      for update skip locked
    ),
    renewed as (
      update ${queueSchedules} as s set seen_at = statement_timestamp()
      where s.name in (select name from renewable)
      returning s.name
    ),
    forgotten as (
      select s.name from ${queueSchedules} as s
      where s.declared_by is not null and s.seen_at < ${age(forgetMs)}
        and s.name not in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
      for update skip locked
    )
    delete from ${queueSchedules} as s where s.name in (select name from forgotten)`;
}

// src/schedules/to-firing.ts
function toFiring(schedule) {
  const { name, revision, catchUp, createdAtMs, passedAtMs, nowMs } = schedule;
  const ticks = ticksOf(schedule, createdAtMs);
  return {
    name,
    revision,
    ticks: ticksToFire(ticks, catchUp, passedAtMs, nowMs),
    passedMs: nowMs,
    nextMs: ticks.after(nowMs) ?? null
  };
}

// src/worker/upkeep/firing.ts
var BATCH = 100;
var LISTENING_LOOK_MS = 6e4;
var HORIZON_MS2 = 2 * LISTENING_LOOK_MS;
var POLLING_LOOK_MS = 5e3;
var SPREAD_MS = 10;
var AGAIN_MS = 250;
var DECLARE_MS = 6e4;
var DECLARE_AGAIN_MS = 1e3;
var TIDY_MS = 36e5;
var FORGET_MS = 7 * 24 * 36e5;
var MAX_RETRY_MS7 = 6e4;
var Firing = class {
  #options;
  #alarm = new Condition();
  /** Schedules that could not be fired, with how often that was so and when to try again. */
  #failed = /* @__PURE__ */ new Map();
  #declareMs = Number.NEGATIVE_INFINITY;
  #tidyMs = Number.NEGATIVE_INFINITY;
  constructor(options) {
    this.#options = options;
  }
  /** Looks soon: a schedule may have been set. */
  wake() {
    this.#alarm.signal();
  }
  async run(signal) {
    const { events, retries } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      try {
        const restMs = await this.look(signal);
        failures = 0;
        await this.#alarm.wait(restMs, signal);
        await sleep(Math.random() * SPREAD_MS, signal);
        this.#alarm.clear();
      } catch (error) {
        events.emit("error", { error, during: "firing schedules" });
        await retries.sleep(jitter(Math.min(1e3 * 2 ** failures++, MAX_RETRY_MS7)), signal);
      }
    }
  }
  /** Looks once; a failure is an `error` event. */
  async tryLook(signal) {
    try {
      await this.look(signal);
    } catch (error) {
      this.#options.events.emit("error", { error, during: "firing schedules" });
    }
  }
  /**
   * Fires what is due, before and after writing its declarations; returns the milliseconds to the next look.
   * @throws the driver's errors, when the database cannot be asked
   */
  async look(signal) {
    const nowMs = performance.now();
    let restMs = await this.#fireAll(signal);
    if (this.#options.declared.length > 0 && nowMs >= this.#declareMs) {
      const declared = await this.#declare();
      this.#declareMs = nowMs + (declared ? jitter(DECLARE_MS) : DECLARE_AGAIN_MS);
      restMs = await this.#fireAll(signal);
    }
    if (nowMs >= this.#tidyMs) {
      this.#tidyMs = nowMs + jitter(TIDY_MS);
      await this.#tidy();
    }
    return this.#options.declared.length === 0 ? restMs : Math.min(restMs, this.#declareMs - nowMs);
  }
  async #declare() {
    const { db, tables: tables2, workerId, declared, events } = this.#options;
    try {
      return await declareSchedules(db, tables2, { workerId, schedules: declared });
    } catch (error) {
      if (isAboutLocks(error)) return false;
      events.emit("error", { error, during: "declaring schedules" });
      return false;
    }
  }
  async #tidy() {
    const { db, tables: tables2, declared } = this.#options;
    const names2 = declared.map(({ name }) => name);
    await tidySchedules(db, tables2, { declared: names2, renewMs: TIDY_MS, forgetMs: FORGET_MS });
  }
  /** Fires until nothing is due; returns how many milliseconds to rest. */
  async #fireAll(signal) {
    for (; ; ) {
      const found2 = await this.#find();
      const due = found2.filter(({ dueInMs }) => dueInMs <= 0);
      const fired = due.length === 0 ? 0 : await this.#fire(due);
      if (signal?.aborted) return 0;
      if (fired > 0) continue;
      const next = found2.find(({ dueInMs }) => dueInMs > 0)?.dueInMs ?? Number.POSITIVE_INFINITY;
      const { listener } = this.#options;
      const lookMs = jitter(listener.listening ? LISTENING_LOOK_MS : POLLING_LOOK_MS);
      const againMs = due.length > 0 ? AGAIN_MS : this.#nextTryMs();
      return Math.max(Math.min(next, lookMs, againMs), 0);
    }
  }
  async #find() {
    const { db, tables: tables2, declared, kinds } = this.#options;
    const nowMs = performance.now();
    return await findDueSchedules(db, tables2, {
      declared: declared.map(({ name }) => name),
      kinds,
      except: [...this.#failed].flatMap(([name, { againMs }]) => againMs > nowMs ? [name] : []),
      horizonMs: HORIZON_MS2,
      limit: BATCH
    });
  }
  /**
   * Fires what is due, all at once or else one by one; returns how many schedules have moved on.
   * @throws when that is no matter of any schedule
   */
  async #fire(due) {
    const firings = due.flatMap((schedule) => {
      try {
        return [toFiring(schedule)];
      } catch (error) {
        this.#fail(schedule.name, error);
        return [];
      }
    });
    if (firings.length === 0) return 0;
    await faultPoint("schedules: found");
    try {
      return await this.#send(firings);
    } catch (error) {
      if (isAboutTheServer(error) || isAboutAccess(error)) throw error;
      const [first, ...others] = firings;
      if (first !== void 0 && others.length === 0) this.#fail(first.name, error);
      if (others.length === 0) return 0;
    }
    let moved = 0;
    for (const firing of firings) moved += await this.#sendAlone(firing);
    return moved;
  }
  async #sendAlone(firing) {
    try {
      return await this.#send([firing]);
    } catch (error) {
      if (isAboutTheServer(error)) throw error;
      this.#fail(firing.name, error);
      return 0;
    }
  }
  async #send(firings) {
    const { db, tables: tables2, channel, events } = this.#options;
    const fired = await fireSchedules(db, tables2, firings, channel);
    await faultPoint("schedules: fired");
    for (const { name, ids } of fired) {
      this.#failed.delete(name);
      const { ticks = [] } = firings.find((firing) => firing.name === name) ?? {};
      if (ticks.length === 0) continue;
      events.emit("fired", { schedule: name, ticks: ticks.map((tick) => new Date(tick)), ids });
    }
    return fired.length;
  }
  #fail(name, error) {
    const undecided = isAboutLocks(error);
    const times = undecided ? 0 : (this.#failed.get(name)?.times ?? 0) + 1;
    const againMs = performance.now() + jitter(Math.min(500 * 2 ** times, MAX_RETRY_MS7));
    this.#failed.set(name, { times, againMs });
    if (undecided) return;
    this.#options.events.emit("error", { error, during: `firing the schedule '${name}'` });
  }
  /** How many milliseconds until a failed one is tried again. */
  #nextTryMs() {
    const nowMs = performance.now();
    const waits = [...this.#failed.values()].map(({ againMs }) => againMs - nowMs);
    return Math.min(...waits.filter((ms) => ms > 0));
  }
};

// src/queries/prune-results.ts
init_executor();
init_server_facts();
import { sql as sql72 } from "drizzle-orm";

// src/queries/prune-queue.ts
init_executor();
import { sql as sql71 } from "drizzle-orm";
async function pruneQueueByQueue(db, tables2, prune) {
  const queues = await queryRows(db, tables2, findExpiredQuery(tables2, prune.retentionMs));
  let pruned = 0;
  for (const { queue } of queues) {
    pruned += (await queryRows(db, tables2, pruneQueueQuery(tables2, String(queue), prune))).length;
  }
  const [row] = await queryRows(db, tables2, countWorkersQuery(tables2));
  return { pruned, workers: Number(row?.workers) };
}
function isExpired(retentionMs) {
  return sql71`r.finished_at < statement_timestamp() - ${retentionMs}::float8 * interval '1 millisecond'`;
}
function findExpiredQuery({ queueResults: queueResults2 }, retentionMs) {
  return sql71`select r.queue from ${queueResults2} as r where ${isExpired(retentionMs)} group by r.queue`;
}
function pruneQueueQuery({ queueResults: queueResults2 }, queue, { retentionMs, limit }) {
  return sql71`
    with expired as (
      select r.job_id from ${queueResults2} as r
      where r.queue = ${queue} and ${isExpired(retentionMs)}
      order by r.finished_at limit ${limit}
      for update skip locked
    )
    delete from ${queueResults2} as r
    where r.queue = ${queue} and r.job_id = any(array(select job_id from expired))
    returning r.job_id`;
}
function countWorkersQuery({ queueWorkers: queueWorkers2 }) {
  return sql71`select count(*)::float8 as workers from ${queueWorkers2}`;
}

// src/queries/prune-results.ts
async function pruneResults(db, tables2, prune) {
  if (isDistributed(tables2)) return await pruneQueueByQueue(db, tables2, prune);
  const [row] = await queryRows(db, tables2, pruneResultsQuery(tables2, prune));
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}
function pruneResultsQuery({ queueResults: queueResults2, queueWorkers: queueWorkers2 }, { retentionMs, limit }) {
  return sql72`
    with expired as (
      select r.job_id, r.queue from ${queueResults2} as r
      where ${isExpired(retentionMs)}
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
var BATCH2 = 1e3;
var SHARE3 = 1 / 10;
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
  /** Deletes a batch. Never rejects; returns how many milliseconds to rest. */
  async #prune() {
    const { db, tables: tables2, retentionMs, events } = this.#options;
    const startMs = performance.now();
    try {
      const { pruned, workers } = await pruneResults(db, tables2, { retentionMs, limit: BATCH2 });
      if (pruned < BATCH2) return PRUNE_EVERY_MS;
      const tookMs = performance.now() - startMs;
      return Math.min(tookMs * (Math.max(workers, 1) / SHARE3 - 1), PRUNE_EVERY_MS);
    } catch (error) {
      events.emit("error", { error, during: "pruning results" });
      return PRUNE_EVERY_MS;
    }
  }
};

// src/worker/upkeep/requests.ts
init_errors();

// src/queries/find-requests.ts
init_executor();
import { sql as sql73 } from "drizzle-orm";
init_server_facts();
async function findRequests(db, tables2, question) {
  const rows = [];
  for (const query of findRequestsQueries(tables2, question))
    rows.push(...await queryRows(db, tables2, query));
  return {
    paused: new Set(rows.filter((row) => row.id === null).map((row) => String(row.queue))),
    jobs: rows.filter((row) => row.id !== null).map(toJobRequest)
  };
}
function findRequestsQueries(tables2, question) {
  const { workerId, jobs } = question;
  if (jobs.length === 0 || !isDistributed(tables2)) return [findRequestsQuery(tables2, question)];
  return [
    findRequestsQuery(tables2, { ...question, jobs: [] }),
    ...perStatement(tables2, jobs).map((jobs2) => jobRequestsQuery(tables2, workerId, jobs2))
  ];
}
function findRequestsQuery(tables2, { workerId, queues, jobs }) {
  const pauses = sql73`
    select p.queue, null::int8 as id, null::int8 as fence, null::bool as held,
      null::text as cancel_reason
    from ${tables2.queuePauses} as p
    where p.queue = any(array(select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb)))`;
  if (jobs.length === 0) return pauses;
  return sql73`${pauses}
    union all${jobRequestsQuery(tables2, workerId, jobs)}`;
}
function jobRequestsQuery({ queueJobs: queueJobs2, queueResults: queueResults2 }, workerId, jobs) {
  const queue = queueOf(jobs, "i.queue");
  return sql73`
    select i.queue, i.id, i.fence, j.id is not null as held,
      coalesce(j.cancel_reason, r.reason) as cancel_reason
    from rows from (
      ${idsAndFences(jobs)},
      jsonb_array_elements_text(${JSON.stringify(jobs.map(({ queue: queue2 }) => queue2))}::text::jsonb)
    ) as i(id, fence, queue)
    left join lateral (
      select j.id, j.cancel_reason from ${queueJobs2} as j
      where j.queue = ${queue} and j.id = i.id and j.fence = i.fence and j.worker_id = ${workerId}::int8
      limit 1
    ) as j on true
    left join lateral (
      select r.errors -> -1 ->> 'message' as reason from ${queueResults2} as r
      where j.id is null and r.queue = ${queue} and r.job_id = i.id and r.fence = i.fence
        and r.state = 'cancelled'
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
var MAX_RETRY_MS8 = 5e3;
var REPORT_EVERY_MS2 = 5e3;
var Requests = class {
  #options;
  #alarm = new Condition();
  #reportedMs = Number.NEGATIVE_INFINITY;
  #markReady = () => void 0;
  /** Fulfilled when the worker may claim: it has looked which queues are paused already. */
  ready = new Promise((resolve) => {
    this.#markReady = resolve;
  });
  constructor(options) {
    this.#options = options;
  }
  /** Looks soon: there may be a request. */
  wake() {
    this.#alarm.signal();
  }
  async run(signal) {
    const { retries } = this.#options;
    let failures = await this.#look() ? 0 : 1;
    this.#markReady();
    while (!signal.aborted) {
      if (failures > 0) await retries.sleep(jitter(Math.min(POLL_MS * 2 ** failures, MAX_RETRY_MS8)), signal);
      else await this.#alarm.wait(jitter(this.#options.listener.listening ? FALLBACK_MS : POLL_MS), signal);
      await sleep(GATHER_MS2, signal);
      if (signal.aborted) return;
      this.#alarm.clear();
      failures = await this.#look() ? 0 : failures + 1;
    }
  }
  /** Never rejects; returns whether the database has answered. */
  async #look() {
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
    const { queue, attempts } = loop;
    if (paused === attempts.paused) return;
    if (paused) {
      attempts.pause();
    } else {
      attempts.resume();
      loop.sweepSoon();
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
var LISTENING_SWEEP_MS = 2e3;
var POLLING_SWEEP_MS = 250;
function buildParts(options) {
  const { db, tables: tables2, handlers, settings, untilEmpty, workerId, declared, events, giveUp } = options;
  const { concurrencyByQueue: concurrencyByQueue2, pollIntervalMs, retentionMs, listen, schedules } = settings;
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
      if (queue === void 0 || queue === REQUESTED) {
        requests.wake();
        firing?.wake();
      }
      if (queue === void 0) watch.look();
      else loopsByQueue.get(queue)?.notify();
    },
    // Without notifications these look more often.
    onPolling: () => {
      requests.wake();
      firing?.wake();
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
      await Promise.all(loops.map((loop) => loop.holdings.endLost()));
    },
    onOthersGone: () => {
      for (const loop of loops) loop.sweepSoon();
    },
    onReturn: () => retries.now()
  });
  const kinds = [...handlers.keys()];
  const firing = schedules === void 0 ? void 0 : new Firing({
    db,
    tables: withFactsOf(tables2, schedules.tables),
    channel: schedules.channel,
    workerId,
    declared,
    kinds,
    listener,
    events,
    retries
  });
  const watch = new Watch({
    runner,
    tables: tables2,
    kinds,
    intervalMs: () => listener.listening ? Math.max(WATCH_MS, pollIntervalMs) : pollIntervalMs,
    events
  });
  const sweeper = new Sweeper({
    runner,
    tables: tables2,
    workerId,
    kinds,
    idleMs: () => listener.listening ? LISTENING_SWEEP_MS : POLLING_SWEEP_MS,
    events,
    retries
  });
  const progress = new Progress(environment, events);
  const loops = [...concurrencyByQueue2].map(
    ([queue, concurrency]) => new ClaimLoop({
      environment: {
        ...environment,
        around: settings.around,
        onBegin: ({ job }) => events.emit("began", { job }),
        onProgress: (attempt, value) => progress.report(attempt, value)
      },
      runner,
      queue,
      handlers,
      concurrency,
      pollIntervalMs,
      events,
      watch: untilEmpty ? void 0 : watch,
      sweeper,
      retries,
      giveUp
    })
  );
  sweeper.serve(loops);
  if (untilEmpty) liveness.expectNoSession();
  const loopsByQueue = new Map(loops.map((loop) => [loop.queue, loop]));
  const requests = new Requests({ ...environment, loops, listener, events, retries });
  const firstWithinMs = untilEmpty ? 0 : FIRST_PRUNE_WITHIN_MS;
  const pruning = new Pruning({ db, tables: tables2, retentionMs, firstWithinMs, events });
  return {
    loops,
    liveness,
    requests,
    firing,
    background: [
      liveness,
      requests,
      progress,
      pruning,
      // A worker that ends when its queues are empty waits for nothing.
      ...untilEmpty ? [] : [watch, sweeper, listener, ...firing === void 0 ? [] : [firing]]
    ]
  };
}

// src/worker/stop.ts
init_errors();
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
  const giveBack2 = () => Promise.all(
    loops.map((loop) => twice(() => loop.holdings.giveBack(tooLate.signal), tooLate.signal, options))
  );
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
    setMaxListeners2(0, this.#giveUp.signal);
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
   * Checks the database, registers, and begins to claim. Resolves when it claims, or once a {@link stop}
   * called meanwhile resolves; a second call changes nothing. Waits for the database as the driver does.
   * @throws InvalidPayloadError when the payload of a schedule is refused
   * @throws MissingMigrationError | UnsupportedPostgresError, or the driver's error when it cannot connect
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
    const forget2 = onFirstSignal(() => void this.stop());
    try {
      await this.start();
      await this.#stopped;
    } finally {
      forget2();
    }
  }
  /**
   * Claims no more, lets handlers finish within `shutdownTimeoutMs`, aborts the signals of the others, gives
   * their jobs back without spending an attempt, and leaves. Then nothing of the worker runs, sends or
   * listens. Takes at most `shutdownTimeoutMs` and 5 seconds, whatever the database does. Can be called any
   * number of times, also while the worker starts. Never rejects: failures are `error` events, and jobs that
   * could not be given back are found by other workers once this one is declared gone.
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
    const { concurrencyByQueue: concurrencyByQueue2, name, schedules, declared } = this.#settings;
    const queues = [...concurrencyByQueue2.keys()];
    const { signal } = this.#stopping;
    const stored = await Promise.all(
      declared.map(async (schedule) => await schedules?.toStore("createWorker", schedule))
    );
    const tables2 = await checkDatabase(this.#db, this.#tables, schedules?.tables);
    signal.throwIfAborted();
    const workerId = await registerWorker(this.#db, tables2, { name, queues });
    const parts = buildParts({
      db: this.#db,
      tables: tables2,
      handlers: this.#handlers,
      settings: this.#settings,
      untilEmpty: this.#untilEmpty,
      workerId,
      declared: stored.filter((schedule) => schedule !== void 0),
      events: this.#events,
      giveUp: this.#giveUp.signal
    });
    if (signal.aborted) return parts;
    this.#background.start(parts.background);
    const stopped = aborted(signal);
    await Promise.race([parts.requests.ready, stopped]);
    if (this.#untilEmpty) await Promise.race([parts.firing?.tryLook(signal), stopped]);
    const mayClaim = Promise.race([parts.liveness.ready, stopped]);
    this.#work = this.#runLoops(parts.loops, mayClaim);
    await mayClaim;
    if (!signal.aborted) this.#events.emit("started", { workerId, name, queues });
    return parts;
  }
  async #runLoops(loops, mayClaim) {
    let claimed;
    do {
      claimed = await Promise.all(loops.map((loop) => loop.run(mayClaim)));
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
    worker.on(event, (told) => {
      if (!("began" in told) || told.began) count[event]++;
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

// src/drivers/transaction-until.ts
function transactionUntil(tx, refusal) {
  const session = Reflect.get(tx, "session");
  if (typeof session !== "object" || session === null) return tx;
  const guarded = sessionUntil(session, refusal);
  const view = Object.create(tx, {
    session: { value: guarded, enumerable: true },
    transaction: { value: savepointsOf(tx, refusal) }
  });
  for (const name of ["_", "query", "_query"]) {
    const held = Reflect.get(tx, name);
    if (typeof held !== "object" || held === null) continue;
    Object.defineProperty(view, name, { value: withSession(held, session, guarded), enumerable: true });
  }
  return view;
}
function sessionUntil(session, refusal) {
  const prepareQuery = Reflect.get(session, "prepareQuery");
  if (typeof prepareQuery !== "function") return session;
  return Object.create(session, {
    prepareQuery: {
      value: (...args) => refuseIn(Reflect.apply(prepareQuery, session, args), refusal)
    }
  });
}
function refuseIn(prepared, refusal) {
  for (const name of ["execute", "all", "values"]) {
    const run = Reflect.get(prepared, name);
    if (typeof run !== "function") continue;
    const guarded = (...args) => {
      const refused = refusal();
      return refused === void 0 ? Reflect.apply(run, prepared, args) : Promise.reject(refused);
    };
    Object.defineProperty(prepared, name, { value: guarded });
  }
  return prepared;
}
function withSession(holder, session, guarded) {
  const copy = Object.create(holder);
  for (const [key, value] of Object.entries(holder)) {
    const holdsIt = typeof value === "object" && value !== null && Reflect.get(value, "session") === session;
    const own = value === session ? guarded : holdsIt ? withSession(value, session, guarded) : value;
    Object.defineProperty(copy, key, { value: own, enumerable: true });
  }
  return copy;
}
function savepointsOf(tx, refusal) {
  return (run) => new Promise((resolve, reject) => {
    const refused = refusal();
    if (refused !== void 0) return reject(refused);
    const inside = (savepoint) => new Promise((release, rollBack) => {
      const unlessRefused = (end, leave) => {
        const refused2 = refusal();
        if (refused2 === void 0) end();
        else leave(refused2);
      };
      const begun = async () => await run(transactionUntil(savepoint, refusal));
      unlessRefused(() => {
        begun().then(
          (value) => unlessRefused(() => release(value), reject),
          (error) => unlessRefused(
            () => rollBack(error),
            () => reject(error)
          )
        );
      }, reject);
    });
    tx.transaction(inside).then(resolve, reject);
  });
}

// src/worker/run-next.ts
init_errors();

// src/queries/reclaim-job.ts
init_executor();
import { sql as sql74 } from "drizzle-orm";
async function reclaimJob(db, tables2, job) {
  const rows = await queryRows(db, tables2, reclaimJobQuery(tables2, job));
  return rows.length > 0;
}
function reclaimJobQuery(tables2, job) {
  return endHolds(tables2, {
    change: {
      claimedAt: sql74`statement_timestamp()`,
      set: sql74`attempt = ${job.attempt}::int2, fence = j.fence + 1`
    },
    where: sql74`j.queue = ${job.queue} and j.id = ${job.id} and j.fence = ${job.fence}::int8 - 1`,
    returning: sql74`j.id`
  });
}

// src/worker/run-next.ts
init_executor();

// src/worker/claim/next-claims.ts
var SHARE4 = 20;
var MAX_QUEUES4 = 1e3;
var EVERYTHING2 = Array.from({ length: MAX_PRIORITY + 1 }, (_2, priority) => ({
  priority,
  floorMs: Number.NEGATIVE_INFINITY
}));
var remembered = /* @__PURE__ */ new WeakMap();
var NextClaims = class _NextClaims {
  #bands = new Bands();
  #nextWholeMs = Number.NEGATIVE_INFINITY;
  /** The one for a queue and some kinds, kept for as long as the app keeps the database. */
  static of(db, tables2, queue, kinds) {
    const ofDb = remembered.get(db) ?? /* @__PURE__ */ new WeakMap();
    remembered.set(db, ofDb);
    const ofTables = ofDb.get(tables2) ?? /* @__PURE__ */ new Map();
    ofDb.set(tables2, ofTables);
    const key = JSON.stringify([queue, ...kinds]);
    if (ofTables.size >= MAX_QUEUES4 && !ofTables.has(key)) ofTables.clear();
    const claims = ofTables.get(key) ?? new _NextClaims();
    ofTables.set(key, claims);
    return claims;
  }
  /**
   * Claims the next job; returns `undefined` only when none is due at all. Starts where the last claim did,
   * or at the very start when nothing is due from there on or that costs little, as on a healthy table.
   */
  async next(runner, tables2, claim) {
    if (performance.now() < this.#nextWholeMs) {
      const job = await this.#claim(runner, tables2, claim, false);
      if (job !== void 0) return job;
    }
    return await this.#claim(runner, tables2, claim, true);
  }
  async #claim(runner, tables2, claim, whole) {
    const startMs = performance.now();
    const bands = whole ? EVERYTHING2 : this.#bands.all;
    const jobs = await claimJobs(runner, tables2, { ...claim, bands, limit: 1 });
    const endMs = performance.now();
    this.#bands.note({ jobs, short: jobs.length === 0, startMs, endMs });
    if (whole) this.#nextWholeMs = endMs + (endMs - startMs) * SHARE4;
    return jobs[0];
  }
};

// src/worker/run-next.ts
async function runNext(db, options) {
  const handlers = checkRunOptions("runNext", options);
  if (typeof db?.transaction !== "function") throw new TypeError(`runNext: ${NO_DATABASE}`);
  const queues = options.queues ?? [...new Set(options.handlers.map(({ job }) => job.queue))];
  if (!Array.isArray(queues)) throw new TypeError(`runNext: queues must be an array, got ${shown(queues)}`);
  for (const queue of queues) {
    checkText2("runNext: the name of a queue", queue, MAX_NAME_BYTES);
    const ran = await runOne(db, options.queue, handlers, queue);
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
async function runOne(db, { tables: tables2, around }, handlers, queue) {
  const kinds = [...handlers.keys()];
  try {
    return await db.transaction(async (tx) => {
      const claim = { queue, kinds, workerId: null, fromGoneWorkers: true, heedPauses: true };
      const job = await NextClaims.of(db, tables2, queue, kinds).next(tx, tables2, claim);
      const handler = job === void 0 ? void 0 : handlers.get(job.kind);
      if (job === void 0 || handler === void 0) return void 0;
      const { attempt, outcome } = await runInSavepoint(tx, { tables: tables2, around: around?.run }, job, handler);
      await faultPoint("runNext: ran");
      if (outcome.type !== "committed") {
        await write2(tx, tables2, attempt, transitionFor(outcome, attempt.facts));
      }
      return toRanJob(attempt, outcome);
    });
  } catch (error) {
    if (!(error instanceof AbandonedAttempt)) throw error;
    const { attempt, outcome } = error;
    await faultPoint("runNext: rolled back");
    await writeAnew(db, tables2, attempt, outcome);
    return toRanJob(attempt, outcome);
  }
}
async function runInSavepoint(tx, { tables: tables2, around }, job, handler) {
  const attemptIn = (savepoint) => {
    const db = transactionUntil(savepoint, () => attempt2.overError);
    const checkTransaction = sameAs(tx, tables2);
    const attempt2 = new Attempt(job, handler, {
      db,
      tables: tables2,
      workerId: null,
      around,
      checkTransaction
    });
    return attempt2;
  };
  let attempt = attemptIn(tx);
  let outcome = { type: "failed", error: new QueueError("The savepoint did not run") };
  try {
    await tx.transaction(async (savepoint) => {
      attempt = attemptIn(savepoint);
      outcome = await executeJob(attempt);
      if (attempt.reason !== void 0) throw new AbandonedAttempt(attempt, outcome);
      if (attempt.completeRan && outcome.type !== "failed") {
        const held = await findHeldJobs(tx, tables2, attempt.holder, [job]);
        outcome = held.get(job.id) === job.fence ? verdictOn(outcome, attempt.facts) : { type: "committed" };
      }
      if (outcome.type === "failed") throw new Undo(outcome);
    });
  } catch (error) {
    if (error instanceof AbandonedAttempt) throw error;
    outcome = error instanceof Undo ? error.outcome : { type: "failed", error };
  }
  return { attempt, outcome };
}
async function write2(db, tables2, { job, holder }, transition) {
  const { id, fence } = job;
  const written = transition.type === "finish" ? await finishJobs(db, tables2, holder, [{ id, fence, transition }]) : await rescheduleJobs(db, tables2, holder, [{ id, fence, transition }]);
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
function toRanJob({ job, facts: facts2 }, outcome) {
  if (outcome.type === "committed") return { job, outcome: "completed" };
  const verdict = verdictOn(outcome, facts2);
  if (verdict.type === "failed") return { job, outcome: "failed", error: verdict.error };
  return { job, outcome: verdict.type === "interrupted" ? "cancelled" : verdict.type };
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
  defineSchedule,
  drain,
  exponentialBackoff,
  fixedBackoff,
  handle,
  runNext,
  schedulesIn,
  snooze,
  unvalidated
};
