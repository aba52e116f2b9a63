import type postgres from 'postgres';
import { citusLayout } from '../../support/citus.ts';
import { isNode, nodeIn, nodesIn, type TreeNode, type TreeValue, walk } from './query-tree.ts';

/*
 * What Citus refuses, as its planner tests it (seen on 13.2), over the tree that PostgreSQL makes of a
 * statement. The tables lie where the migrations of docs/scaling.md put them.
 */

export type Refusal = keyof typeof REFUSALS;

/** What Citus says. */
export const REFUSALS = {
  returning: 'non-IMMUTABLE functions are not allowed in the RETURNING clause',
  conflict:
    'functions used in the DO UPDATE SET clause of INSERTs on distributed tables must be marked IMMUTABLE',
  conditional: 'non-IMMUTABLE functions are not allowed in CASE or COALESCE statements',
  stable: 'STABLE functions used in UPDATE queries cannot be called with column references',
  volatile: 'functions used in UPDATE queries on distributed tables must not be VOLATILE',
  lateral: 'cannot perform a lateral outer join when a distributed subquery references a table function',
  join: 'complex joins are only supported when all distributed tables are co-located',
  lock: 'could not run distributed query with FOR UPDATE/SHARE commands',
  target: 'nothing, but the change goes to all shards, with two-phase commit: it names no queue',
  notify:
    'nothing, but the notification is heard on the node of the shard alone; or: cannot PREPARE a transaction ' +
    'that has executed LISTEN, UNLISTEN, or NOTIFY',
  insert: 'volatile functions are not allowed in distributed INSERT ... SELECT queries',
  beside: 'invalid input syntax for type bigint: "PGCOPY"',
  ctid: 'cannot perform distributed planning for the given modification',
  recursive: 'recursive CTEs are only supported when they contain a filter on the distribution column',
  correlated: 'correlated subqueries are not supported when the FROM clause contains a CTE or subquery',
  upsert: 'subqueries are not supported within INSERT queries; or: complex joins are only supported when …',
  columnless: 'a column definition list is required for functions returning "record"',
  locked: 'missing data for column "queue"; or: invalid byte sequence for encoding "UTF8": 0xff',
  subscript: 'nothing, but its server crashes: it takes the subscript for an assignment to an element',
  session: 'nothing, but it asks the node of the row about locks and backends, not that of the session',
} as const;

/** What the catalog knows: volatilities by oid of the function, and the functions of a type's text form. */
export interface Catalog {
  readonly volatility: ReadonlyMap<string, string>;
  readonly textFunctions: ReadonlyMap<string, { readonly input: string; readonly output: string }>;
  /** By oid; with the number of their column `queue` where they are distributed by it. */
  readonly tables: ReadonlyMap<string, { readonly name: string; readonly queue: string | undefined }>;
  readonly notify: string;
  /** The functions that ask about the session, or about what its node holds. */
  readonly session: ReadonlySet<string>;
}

export async function readCatalog(client: postgres.Sql): Promise<Catalog> {
  const functions = await client<{ oid: string; name: string; volatility: string }[]>`
    select oid::text, proname::text as name, provolatile::text as volatility from pg_proc`;
  const types = await client<{ oid: string; input: string; output: string }[]>`
    select oid::text, typinput::oid::text as input, typoutput::oid::text as output from pg_type`;
  const { distributed, reference } = citusLayout();
  const tables = await client<{ oid: string; name: string; queue: string | null }[]>`
    select c.oid::text, c.relname::text as name, a.attnum::text as queue from pg_class as c
    left join pg_attribute as a on a.attrelid = c.oid and a.attname = 'queue'
      and c.relname = any(${distributed})
    where c.relname = any(${[...distributed, ...reference]})`;
  return {
    volatility: new Map(functions.map(({ oid, volatility }) => [oid, volatility])),
    textFunctions: new Map(types.map(({ oid, input, output }) => [oid, { input, output }])),
    tables: new Map(tables.map(({ oid, name, queue }) => [oid, { name, queue: queue ?? undefined }])),
    notify: functions.find(({ name }) => name === 'pg_notify')?.oid ?? '',
    session: new Set(
      functions
        .filter(({ name }) => /^pg_(?:(?:try_)?advisory|backend_pid|lock_status|control_system)/.test(name))
        .map(({ oid }) => oid),
    ),
  };
}

const INSERT = '3';
const RELATION = '0';
const SUBQUERY = '1';
const CTE = '6';
const FUNCTION = '3';
const OUTER_JOINS = new Set(['1', '2', '3']);

/** What Citus would refuse in a statement, each once. */
export function refusalsOf(statement: TreeNode, catalog: Catalog): Set<Refusal> {
  return new Rules(statement, catalog).refusals;
}

class Rules {
  readonly refusals = new Set<Refusal>();
  readonly #catalog: Catalog;
  readonly #statement: TreeNode;
  readonly #queries: TreeNode[];
  /** Whether a subquery asks a CTE for no column, only whether there is a row. */
  #asksColumnless = false;

  constructor(statement: TreeNode, catalog: Catalog) {
    this.#catalog = catalog;
    this.#statement = statement;
    this.#queries = [...walk(statement)].filter(({ tag }) => tag === 'QUERY');
    for (const query of this.#queries) this.#check(query);
    this.#checkWhole();
  }

  #refuse(what: Refusal, when: boolean): void {
    if (when) this.refusals.add(what);
  }

  #check(query: TreeNode): void {
    const conflict = nodeIn(query, 'onConflict');
    for (const entry of conflict ? nodesIn(conflict, 'onConflictSet') : []) {
      this.#refuse('conflict', this.#isMutable(query, entry));
    }
    if (isChange(query) || isInsert(query)) {
      this.#refuse('returning', this.#isMutable(query, query.fields.returningList));
    }
    this.#refuse('upsert', conflict !== undefined && hasSublink(conflict));
    if (query.fields.hasRecursive === 'true') this.#checkRecursion(query);
    this.#checkSublinks(query);
    if (isInsert(query)) {
      const rows = nodesIn(query, 'rtable').filter(({ fields }) => fields.rtekind === SUBQUERY);
      const sources = rows.flatMap((row) => nodesIn(row, 'subquery'));
      this.#refuse('correlated', sources.some(asksAboutRow));
      this.#refuse(
        'insert',
        rows.some((row) => this.#has(row, 'v')),
      );
    }
    if (isChange(query)) this.#checkChange(query);
    this.#checkTables(query);
  }

  /** Each arm of a recursive CTE finds its shard by itself, unless an insert keeps Citus from sending all to one. */
  #checkRecursion(query: TreeNode): void {
    const arms = nodesIn(query, 'cteList')
      .filter(({ fields }) => fields.cterecursive === 'true')
      .flatMap((cte) => [...walk(cte)].filter(({ tag }) => tag === 'QUERY'));
    this.#refuse(
      'recursive',
      this.#queries.some(isInsert) || arms.some((arm) => this.#withoutQueue(arm).length > 0),
    );
  }

  #checkSublinks(query: TreeNode): void {
    const below = [query.fields.targetList, query.fields.jointree];
    for (const { fields } of walk(below, ({ tag }) => tag !== 'QUERY')) {
      const asked = isNode(fields.subselect) ? fields.subselect : undefined;
      if (asked === undefined) continue;
      const readsCte = nodesIn(asked, 'rtable').some(({ fields: { rtekind } }) => rtekind === CTE);
      if (readsCte && nodesIn(asked, 'targetList').length === 0) this.#asksColumnless = true;
    }
  }

  #checkChange(query: TreeNode): void {
    const where = nodeIn(query, 'jointree')?.fields.quals;
    const set = isUpdate(query) ? nodesIn(query, 'targetList') : [];
    this.#refuse(
      'subscript',
      set.some((entry) => nodeIn(entry, 'expr')?.tag === 'SUBSCRIPTINGREF'),
    );
    this.#refuse('volatile', this.#has([set, query.fields.jointree, query.fields.rtable], 'v'));
    // Citus looks no further where a subquery begins.
    const outside = ({ tag }: TreeNode) => tag !== 'QUERY';
    for (const node of walk([set, where], outside)) {
      if (node.tag === 'CASEEXPR' || node.tag === 'COALESCEEXPR') {
        this.#refuse('conditional', this.#isMutable(query, node));
      } else if (this.#functionsOf(node).some((oid) => this.#catalog.volatility.get(oid) === 's')) {
        const below = [...walk(Object.values(node.fields), outside)];
        this.#refuse(
          'stable',
          below.some(({ tag }) => tag === 'VAR'),
        );
      }
    }
  }

  /** A table that is distributed is found by one constant queue. */
  #checkTables(query: TreeNode): void {
    const here = this.#withoutQueue(query);
    this.#refuse('target', here.length > 0 && isChange(query));
    this.#refuse('lock', here.length > 0 && query.fields.hasForUpdate === 'true');
    // What is below an outer join, in the parts of a `union all` each by itself.
    if (isNode(query.fields.setOperations)) return;
    const outer = [...walk(query.fields.jointree, ({ tag }) => tag !== 'QUERY')].some(
      ({ tag, fields }) => tag === 'JOINEXPR' && OUTER_JOINS.has(String(fields.jointype)),
    );
    const lateral = nodesIn(query, 'rtable').filter(
      ({ fields }) => fields.rtekind === SUBQUERY && fields.lateral === 'true',
    );
    const below = lateral.flatMap((entry) =>
      [...walk(entry)].flatMap((node) => (node.tag === 'QUERY' ? this.#withoutQueue(node) : [])),
    );
    this.#refuse('lateral', below.length > 0);
    this.#refuse('join', outer && new Set([...below, ...here]).size > 1);
  }

  /** The distributed tables of this level that no constant queue finds. */
  #withoutQueue(query: TreeNode): string[] {
    return nodesIn(query, 'rtable').flatMap((entry, index) => {
      if (entry.fields.rtekind !== RELATION) return [];
      const table = this.#catalog.tables.get(String(entry.fields.relid));
      const place = String(index + 1);
      if (table?.queue === undefined || hasConstant(query, place, table.queue)) return [];
      if (isInsert(query) && place === query.fields.resultRelation) return [];
      return [table.name];
    });
  }

  #checkWhole(): void {
    const inserts = this.#queries.some(isInsert);
    const changes = this.#queries.some(isChange);
    const locks = this.#queries.some(({ fields }) => fields.hasForUpdate === 'true');
    const ctes = nodesIn(this.#statement, 'cteList');
    const reads = [...walk(this.#statement)].some(
      ({ tag, fields }) => tag === 'RANGETBLENTRY' && this.#catalog.tables.has(String(fields.relid)),
    );
    const asks = [...walk(this.#statement)].some((node) =>
      this.#functionsOf(node).some((oid) => this.#catalog.session.has(oid)),
    );
    this.#refuse('session', reads && asks);
    const byPlace = this.#queries
      .filter(isChange)
      .some((query) =>
        [...walk(query.fields.jointree, ({ tag }) => tag !== 'QUERY')].some(
          ({ tag, fields }) => tag === 'VAR' && fields.varattno === '-1' && fields.varlevelsup === '0',
        ),
      );
    const changesReference = this.#queries.some((query) => {
      const [target] = isChange(query) ? nodesIn(query, 'rtable') : [];
      return target !== undefined && this.#isReference(target);
    });
    this.#refuse('columnless', this.#asksColumnless && (inserts || changesReference));
    this.#refuse('ctid', inserts && byPlace);
    const locksReference = this.#queries.some(
      (query) =>
        query.fields.hasForUpdate === 'true' &&
        nodesIn(query, 'rtable').some((entry) => this.#isReference(entry)) &&
        readsList(query),
    );
    this.#refuse('locked', (inserts || changesReference) && locksReference);
    for (const query of this.#queries) {
      // Its own level: a notification, or a function of a subselect, belongs to the query that calls it.
      const own = [...walk(Object.values(query.fields), ({ tag }) => tag !== 'QUERY')];
      const notifies = own.some((node) => this.#functionsOf(node).includes(this.#catalog.notify));
      const reads = [...walk([query.fields.rtable, query.fields.targetList, query.fields.jointree])].some(
        ({ tag, fields }) => tag === 'RANGETBLENTRY' && this.#catalog.tables.has(String(fields.relid)),
      );
      this.#refuse('notify', notifies && (reads || (changes && !inserts)));
    }
    const inside = [ctes, this.#statement.fields.rtable, this.#statement.fields.jointree];
    const lockPlaced = isChange(this.#statement) ? [inside, this.#statement.fields.targetList] : inside;
    this.#refuse('beside', locks && this.#has(lockPlaced, 'v'));
  }

  #isReference({ fields: { relid } }: TreeNode): boolean {
    const table = this.#catalog.tables.get(String(relid));
    return table !== undefined && table.queue === undefined;
  }

  /** As `contain_mutable_functions`, with the columns of what the planner pulls up into the query. */
  #isMutable(query: TreeNode, value: TreeValue): boolean {
    for (const node of walk(value)) {
      if (this.#functionsOf(node).some((oid) => this.#catalog.volatility.get(oid) !== 'i')) return true;
      if (node.tag === 'SQLVALUEFUNCTION' || node.tag === 'NEXTVALUEEXPR') return true;
      const source = node.tag === 'VAR' ? this.#pulledUp(query, node) : undefined;
      if (source !== undefined && this.#isMutable(source.query, source.expression)) return true;
    }
    return false;
  }

  /** What a column stands for, where its subquery or CTE disappears before Citus looks. */
  #pulledUp(
    query: TreeNode,
    column: TreeNode,
  ): { readonly query: TreeNode; readonly expression: TreeNode } | undefined {
    if (column.fields.varlevelsup !== '0') return undefined;
    const entry = nodesIn(query, 'rtable')[Number(column.fields.varno) - 1];
    if (entry === undefined) return undefined;
    const cte = [query, this.#statement]
      .flatMap((level) => nodesIn(level, 'cteList'))
      .find(
        ({ fields }) =>
          entry.fields.rtekind === CTE &&
          fields.ctename === entry.fields.ctename &&
          fields.ctematerialized !== '1' &&
          fields.cterefcount === '1',
      );
    const source = cte ? nodeIn(cte, 'ctequery') : nodeIn(entry, 'subquery');
    if (source?.fields.commandType !== '1' || source.fields.limitOffset || source.fields.limitCount) return;
    const expression = nodesIn(source, 'targetList')[Number(column.fields.varattno) - 1];
    return expression && { query: source, expression };
  }

  #has(value: TreeValue, volatility: 'v' | 's'): boolean {
    for (const node of walk(value)) {
      if (this.#functionsOf(node).some((oid) => this.#catalog.volatility.get(oid) === volatility))
        return true;
    }
    return false;
  }

  /** The functions that a node itself calls. */
  #functionsOf({ tag, fields }: TreeNode): string[] {
    if (tag === 'FUNCEXPR') return [String(fields.funcid)];
    if (fields.opfuncid !== undefined) return [String(fields.opfuncid)];
    if (tag !== 'COERCEVIAIO') return [];
    const from = this.#catalog.textFunctions.get(typeOf(fields.arg))?.output;
    const to = this.#catalog.textFunctions.get(String(fields.resulttype))?.input;
    return [from, to].filter((oid) => oid !== undefined);
  }
}

/** Whether it reads rows that are no table's: a function's or a CTE's. (Citus takes those after `not in`.) */
function readsList(query: TreeNode): boolean {
  const lists = new Set<TreeValue>([FUNCTION, CTE]);
  return (
    nodesIn(query, 'rtable').some(({ fields }) => lists.has(fields.rtekind)) ||
    [...walk(query)].some(({ tag, fields }) => tag === 'FUNCEXPR' && fields.funcretset === 'true')
  );
}

/** Whether it reads a CTE, and asks another table about each row. */
function asksAboutRow(query: TreeNode): boolean {
  if (!nodesIn(query, 'rtable').some(({ fields }) => fields.rtekind === CTE)) return false;
  const below = [...walk(query.fields.jointree, ({ tag }) => tag !== 'QUERY')];
  return below.some(({ fields: { subselect } }) => {
    if (subselect === undefined || !isNode(subselect)) return false;
    const readsTable = nodesIn(subselect, 'rtable').some(({ fields }) => fields.rtekind === RELATION);
    const names = [...walk(subselect)].some(({ tag, fields }) => tag === 'VAR' && fields.varlevelsup === '1');
    return readsTable && names;
  });
}

function hasSublink(value: TreeValue): boolean {
  return [...walk(value)].some(({ tag }) => tag === 'SUBLINK');
}

function isUpdate({ fields }: TreeNode): boolean {
  return fields.commandType === '2';
}

function isChange({ fields }: TreeNode): boolean {
  return fields.commandType === '2' || fields.commandType === '4';
}

function isInsert({ fields }: TreeNode): boolean {
  return fields.commandType === INSERT;
}

/** Whether the query's conditions, joined by AND, hold `queue = $n` of this table. */
function hasConstant(query: TreeNode, varno: string, queue: string): boolean {
  const anded = (value: TreeValue): TreeNode[] => {
    if (!isNode(value)) return [];
    if (value.tag === 'FROMEXPR') {
      return [...anded(value.fields.quals), ...nodesIn(value, 'fromlist').flatMap(anded)];
    }
    if (value.tag === 'JOINEXPR' && value.fields.jointype === '0') {
      return [value.fields.quals, value.fields.larg, value.fields.rarg].flatMap(anded);
    }
    if (value.tag === 'BOOLEXPR' && value.fields.boolop === 'and') {
      return nodesIn(value, 'args').flatMap(anded);
    }
    return [value];
  };
  return anded(query.fields.jointree).some((condition) => {
    if (condition.tag !== 'OPEXPR') return false;
    const sides = nodesIn(condition, 'args');
    const isQueue = ({ tag, fields }: TreeNode) =>
      tag === 'VAR' && fields.varno === varno && fields.varattno === queue && fields.varlevelsup === '0';
    return sides.some(isQueue) && sides.some(({ tag }) => tag === 'PARAM' || tag === 'CONST');
  });
}

function typeOf(value: TreeValue): string {
  if (!isNode(value)) return '';
  const { fields } = value;
  const type =
    fields.vartype ??
    fields.paramtype ??
    fields.consttype ??
    fields.funcresulttype ??
    fields.opresulttype ??
    fields.resulttype ??
    fields.aggtype ??
    fields.casetype ??
    fields.coalescetype;
  return String(type ?? '');
}
