import { misused } from '../failure.ts';

/** Where the tables are, as `createQueueTables` is told. */
export interface TablePlace {
  readonly prefix: string;
  readonly schema: string | undefined;
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/** @throws Failure for a name that would need quotes */
export function placeOf({
  prefix = 'queue_',
  schema,
}: {
  readonly prefix?: string;
  readonly schema?: string;
}): TablePlace {
  for (const name of [prefix, schema ?? prefix])
    if (!PLAIN.test(name)) throw misused(`'${name}' must be a plain lower-case name`);
  return { prefix, schema };
}

/** A table, an index or a sequence by its name behind the prefix; `bare` where SQL takes no schema. */
export function namesIn({ prefix, schema }: TablePlace) {
  const bare = (name: string) => `${prefix}${name}`;
  return { bare, at: (name: string) => (schema === undefined ? bare(name) : `${schema}.${bare(name)}`) };
}

/** Statements as a migration of drizzle-kit has them. */
export function migration(statements: readonly string[]): string {
  return `${statements.join(';\n--> statement-breakpoint\n')};`;
}
