import { createTwoFilesPatch } from 'diff';
import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';

export interface Snapshot {
  /** In `__snapshots__`. */
  readonly file: string;
  readonly text: string;
}

const dialect = new PgDialect();

/**
 * What is kept of the text of each statement, by its name: all of it, or where that is less than half as much,
 * what differs from a plainer form: `a, b` adds to `a`. In a difference `$` stands for each parameter, because
 * one more would change the numbers of all that follow; the parameters are listed in their order.
 */
export function snapshotsOf(statements: Readonly<Record<string, SQL>>): Record<string, Snapshot> {
  const texts = new Map(Object.entries(statements).map(([name, query]) => [name, textOf(query)]));
  return Object.fromEntries(
    [...texts].map(([name, text]) => {
      const path = name.replaceAll(/[^a-zA-Z]+/g, '-');
      const patches = plainerForms(name).flatMap((plainer) => {
        const plainText = texts.get(plainer);
        return plainText === undefined ? [] : [patchOf([plainer, plainText], [name, text])];
      });
      const [patch = text] = patches.sort((one, other) => one.length - other.length);
      const isShort = patch.length * 2 < text.length;
      return [name, isShort ? { file: `${path}.diff`, text: patch } : { file: `${path}.sql`, text }];
    }),
  );
}

function textOf(query: SQL): string {
  const { sql, params } = dialect.sqlToQuery(query);
  const values = params.map((param, index) => `-- $${index + 1} = ${JSON.stringify(param)}`);
  return `${[sql.replace(/^\n/, ''), ...values].join('\n')}\n`;
}

/** What the name says when one thing is left out that this form adds. */
function plainerForms(name: string): string[] {
  const [statement, ...added] = name.split(', ');
  return added.map((_, at) => [statement, ...added.toSpliced(at, 1)].join(', '));
}

type Named = readonly [name: string, text: string];

function patchOf(from: Named, to: Named): string {
  const [before, after] = [from, to].map(([, text]) => text.replaceAll(/\$\d+/g, '$'));
  return createTwoFilesPatch(from[0], to[0], before ?? '', after ?? '', '', '', { context: 2 });
}
