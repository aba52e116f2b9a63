import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { Survey } from './survey.ts';

/** One file that `init` makes, or adds a line to. */
export interface Change {
  readonly file: string;
  /** `there`: it is left alone. */
  readonly action: 'create' | 'append' | 'there';
  readonly text: string;
}

const SCHEMA_LINE = "export * from 'drizzle-queue/schema';";

/** What `init` would write, file by file; nothing that is there changes but the schema's last line. */
export function planOf(survey: Survey): Change[] {
  const { sources, root, end, database, driver } = survey;
  const at = (name: string) => join(sources, `${name}.${end}`);
  const db = database ?? { file: at('db'), name: 'db' };
  const imported = (from: string, to: string) => specifier(survey, from, to);
  const [jobs, handlers, worker] = [at('jobs'), at('handlers'), at('worker')];
  const config = join(root, `queue.config.${end}`);
  const isTypeScript = end === 'ts';
  return [
    schemaChange(survey),
    ...(database === undefined ? [created(db.file, databaseText(driver, isTypeScript))] : []),
    created(jobs, jobsText(survey)),
    created(
      handlers,
      `import { handle } from 'drizzle-queue';
import { greet } from '${imported(handlers, jobs)}';

export const handlers = [
  handle(greet, ({ payload }) => {
    console.log(\`Hello \${payload.name}\`);
  }),
];
`,
    ),
    created(
      worker,
      `import { createWorker } from 'drizzle-queue';
import { ${db.name} } from '${imported(worker, db.file)}';
import { handlers } from '${imported(worker, handlers)}';
import { queue } from '${imported(worker, jobs)}';

const worker = createWorker(${db.name}, { queue, handlers });

// Until SIGINT or SIGTERM.
worker.run().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
`,
    ),
    created(
      config,
      `import { defineConfig } from 'drizzle-queue/config';
import { ${db.name} } from '${imported(config, db.file)}';
import { queue } from '${imported(config, jobs)}';

export default defineConfig({
  ${db.name === 'db' ? 'db' : `db: ${db.name}`},
  queue,
  handlers: async () => (await import('${imported(config, handlers)}')).handlers,
});
`,
    ),
  ];
}

function created(file: string, text: string): Change {
  return { file, action: existsSync(file) ? 'there' : 'create', text };
}

function schemaChange({ schemaFiles }: Survey): Change {
  const texts = schemaFiles.map((file) => ({ file, text: readFileSync(file, 'utf8') }));
  const there = texts.find(({ text }) => /drizzle-queue\/schema['"]/.test(text));
  if (there !== undefined) return { file: there.file, action: 'there', text: SCHEMA_LINE };
  // A file that gathers the others, if there is one.
  const chosen = texts.find(({ file }) => /^(schema|index)\./.test(basename(file))) ?? texts[0];
  const before = chosen?.text ?? '';
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  return { file: chosen?.file ?? '', action: 'append', text: `${gap}\n${SCHEMA_LINE}\n` };
}

function specifier({ importEnd }: Survey, from: string, to: string): string {
  const path = relative(dirname(from), to).replaceAll('\\', '/');
  const isTypeScript = /\.[cm]?ts$/.test(path);
  const named = isTypeScript ? `${path.replace(/\.([cm]?)ts$/, '')}${importEnd}` : path;
  return named.startsWith('.') ? named : `./${named}`;
}

function jobsText({ hasZod, end }: Survey): string {
  const [imported, payload] = hasZod
    ? ['', 'z.object({ name: z.string() })']
    : [', unvalidated', end === 'ts' ? 'unvalidated<{ name: string }>()' : 'unvalidated()'];
  return `import { createQueue, defineJob${imported} } from 'drizzle-queue';
${hasZod ? "import { z } from 'zod';\n" : ''}
export const queue = createQueue();

export const greet = defineJob('greet', { payload: ${payload} });
`;
}

function databaseText(driver: Survey['driver'], isTypeScript: boolean): string {
  const url = `process.env.DATABASE_URL${isTypeScript ? '!' : ''}`;
  if (driver === 'pg') {
    return `import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: ${url} });
// Without a listener a broken connection ends the process.
pool.on('error', (error) => console.error(error));

export const db = drizzle({ client: pool });
`;
  }
  return `import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

export const db = drizzle({ client: postgres(${url}) });
`;
}
