import type postgres from 'postgres';

/** A node of a parsed statement, as PostgreSQL itself sees it: `tag` is `QUERY`, `FUNCEXPR`, `VAR` and so on. */
export interface TreeNode {
  readonly tag: string;
  readonly fields: Readonly<Record<string, TreeValue>>;
}

export type TreeValue = TreeNode | string | undefined | readonly TreeValue[];

/**
 * A statement as the server has analysed it, with every function and operator resolved. `begin atomic` makes
 * PostgreSQL keep that tree.
 */
export async function queryTreeOf(client: postgres.Sql, text: string): Promise<TreeNode> {
  return await client.begin(async (tx) => {
    await tx.unsafe(`prepare analysed as ${text}`);
    const [{ types } = { types: '' }] = await tx<{ types: string }[]>`
      select array_to_string(parameter_types::text[], ', ') as types
      from pg_prepared_statements where name = 'analysed'`;
    await tx.unsafe('deallocate analysed');
    await tx.unsafe(`create function analysed(${types}) returns void language sql begin atomic ${text}; end`);
    const [{ body } = { body: '' }] = await tx<{ body: string }[]>`
      select prosqlbody::text as body from pg_proc where proname = 'analysed'`;
    await tx.unsafe('drop function analysed');
    const [query] = flatten(parseTree(body)).filter((node) => node.tag === 'QUERY');
    if (query === undefined) throw new Error(`no query in ${body.slice(0, 200)}`);
    return query;
  });
}

function flatten(value: TreeValue): TreeNode[] {
  if (isList(value)) return value.flatMap(flatten);
  return isNode(value) ? [value] : [];
}

export function isNode(value: TreeValue): value is TreeNode {
  return typeof value === 'object' && !isList(value);
}

export function isList(value: TreeValue): value is readonly TreeValue[] {
  return Array.isArray(value);
}

/** The nodes of a field that is a list; none when it is empty. */
export function nodesIn(node: TreeNode, field: string): TreeNode[] {
  return flatten(node.fields[field]);
}

export function nodeIn(node: TreeNode, field: string): TreeNode | undefined {
  return nodesIn(node, field)[0];
}

/** The node and all below it, those of subqueries and CTEs included, unless `enter` says no. */
export function* walk(
  value: TreeValue,
  enter: (node: TreeNode) => boolean = () => true,
): Generator<TreeNode> {
  if (isList(value)) {
    for (const part of value) yield* walk(part, enter);
    return;
  }
  if (!isNode(value)) return;
  yield value;
  if (!enter(value)) return;
  for (const field of Object.values(value.fields)) yield* walk(field, enter);
}

/** Reads the text of a `pg_node_tree`. Numbers, names and constants stay text; `<>` is `undefined`. */
function parseTree(text: string): TreeValue {
  const tokens = text.match(/\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[{}()]|(?:[^\s{}()\\[\]]|\\.)+/g) ?? [];
  let at = 0;
  const value = (): TreeValue => {
    const token = tokens[at++];
    if (token === '(') {
      const parts: TreeValue[] = [];
      while (tokens[at] !== ')') parts.push(value());
      at++;
      return parts;
    }
    if (token === '{') {
      const tag = tokens[at++] ?? '';
      const fields: Record<string, TreeValue> = {};
      while (tokens[at] !== '}') {
        const name = (tokens[at++] ?? '').slice(1);
        const values: TreeValue[] = [];
        // A constant is its length and its bytes.
        while (!/^:[a-z]|^}$/i.test(tokens[at] ?? '}')) values.push(value());
        fields[name] = values.length === 1 ? values[0] : values;
      }
      at++;
      return { tag, fields };
    }
    return token === '<>' ? undefined : token;
  };
  return value();
}
