/** The text with the contents of quoted literals taken out, and on one line. */
export function plainText(text: string): string {
  return text.replaceAll(/'(?:[^']|'')*'/g, `''`).replaceAll(/\s+/g, ' ');
}

/** The part of a statement from `start` to the end of the parentheses that `start` is in, or of the statement. */
export function clauseText(text: string, start: number): string {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth < 0) return text.slice(start, at);
  }
  return text.slice(start);
}

/** What `text` consists of, cut at every `separator` outside parentheses. */
export function topLevel(text: string, separator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')') depth--;
    if (depth === 0 && text.startsWith(separator, at)) {
      parts.push(text.slice(from, at));
      from = at + separator.length;
    }
  }
  return [...parts, text.slice(from)];
}

/** The names that are called as functions, each once. */
export function functionsIn(text: string): string[] {
  const grammar = new Set(['all', 'any', 'array', 'coalesce', 'greatest', 'least', 'nullif']);
  const calls = plainText(text).matchAll(/(?<!["\w]|\bas )([a-z_]+)\(/g);
  return [...new Set([...calls].map((call) => call[1] ?? ''))].filter((name) => !grammar.has(name));
}

/** An UPDATE or DELETE that is (part of) a statement. */
export interface Change {
  readonly text: string;
  /** The alias of the table that it changes; that of an `ON CONFLICT DO UPDATE` is the INSERT's. */
  readonly alias: string;
  /** Each assignment of its SET and each condition of its WHERE. */
  readonly terms: readonly string[];
}

export function changesIn(statement: string): Change[] {
  const text = plainText(statement);
  return [...text.matchAll(/\b(?:update|delete from) "\w+" as (\w)|\bdo update/g)].map(
    ({ index, 1: alias }) => {
      const [change = ''] = topLevel(clauseText(text, index), ' returning ');
      const [head = '', where = ''] = topLevel(change, ' where ');
      const [set = ''] = topLevel(topLevel(head, ' set ')[1] ?? '', ' from ');
      const terms = [...topLevel(set, ','), ...topLevel(where, ' and ')].map((term) => term.trim());
      return { text: change, alias: alias ?? 'w', terms: terms.filter((term) => term !== '') };
    },
  );
}
