import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { ExportedDatabase } from './find-database.ts';
import type { Survey } from './survey.ts';

/** One file that `init` makes, or adds a line to. */
export interface Change {
  readonly file: string;
  /** `there`: it is left alone. */
  readonly action: 'create' | 'append' | 'there';
  readonly text: string;
}

const SCHEMA_LINE = "export * from 'drizzle-queue/schema';";

/** Where the worker is, except in an app whose database is injected. */
export function workerFile({ sources, end }: Survey): string {
  return join(sources, `worker.${end}`);
}

/** What `init` would write, file by file; nothing that is there changes but the schema's last line. */
export function planOf(survey: Survey): Change[] {
  const { sources, root, end, isInjected } = survey;
  const at = (name: string) => join(sources, `${name}.${end}`);
  const jobs = at('jobs');
  const firstJob = created(jobs, jobsText(survey));
  // What else there is to write are providers, whose modules only the app knows.
  if (isInjected) return [schemaChange(survey), firstJob];
  const db = survey.database ?? newDatabase(survey);
  const imported = (from: string, to: string) => specifier(survey, from, to);
  const [handlers, worker] = [at('handlers'), workerFile(survey)];
  const config = join(root, `queue.config.${end}`);
  return [
    schemaChange(survey),
    ...(survey.database === undefined ? [created(db.file, databaseText(survey))] : []),
    firstJob,
    created(handlers, handlersText(survey, db.name, imported(handlers, db.file), imported(handlers, jobs))),
    created(
      worker,
      `import { createWorker } from 'drizzle-queue';
import { ${db.name} } from '${imported(worker, db.file)}';
import { handlers } from '${imported(worker, handlers)}';
import { queue } from '${imported(worker, jobs)}';

// With the console as its log it also prints attempts that fail and are retried.
const worker = createWorker(${db.name}, { queue, handlers, log: console });

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

/** What the app must be told beside the list of files, a sentence each. */
export function notesOn(survey: Survey): string[] {
  const { root, end, isInjected, hiddenDatabase, database, buildConfig } = survey;
  const { urlVariable, hasUrl } = survey;
  const named = (file: string) => relative(root, file).replaceAll('\\', '/');
  const unset = hasUrl
    ? []
    : [
        `${urlVariable} is not set here, in .env.local or in .env: ` +
          'pass --env-file FILE to drizzle-queue, and --env-file=FILE to node',
      ];
  if (isInjected) {
    const nest = `NestJS injects your database, so the handlers and the worker are providers: ${NEST_GUIDE}`;
    return [nest, ...unset];
  }
  return [
    ...unset,
    ...(database === undefined && hiddenDatabase !== undefined
      ? [
          `${named(hiddenDatabase)} opens a database and exports none, so ` +
            `${named(newDatabase(survey).file)} opens one for the worker`,
        ]
      : []),
    ...(buildConfig === undefined
      ? []
      : [`${buildConfig} excludes drizzle.config.ts: exclude queue.config.${end} there as well`]),
  ];
}

const NEST_GUIDE = 'https://drizzle-queue.github.io/drizzle-queue/guides/nestjs';

/** A new file for a database, of a name that hides no module of the app. */
function newDatabase({ sources, end }: Survey): ExportedDatabase {
  const ends = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'];
  const isTaken = ends.some((each) =>
    [`db.${each}`, join('db', `index.${each}`)].some((name) => existsSync(join(sources, name))),
  );
  return { file: join(sources, `${isTaken ? 'queue-db' : 'db'}.${end}`), name: 'db' };
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

/** In TypeScript the `db` of the context gets its type once, for the handlers that are to come. */
function handlersText({ end }: Survey, db: string, dbFile: string, jobs: string): string {
  const [imported, typed] =
    end === 'ts'
      ? [
          `import { handlersFor } from 'drizzle-queue';\nimport type { ${db} } from '${dbFile}';`,
          `const { handle } = handlersFor<typeof ${db}>();\n\n`,
        ]
      : ["import { handle } from 'drizzle-queue';", ''];
  return `${imported}
import { greet } from '${jobs}';

${typed}export const handlers = [
  handle(greet, ({ payload }) => {
    console.log(\`Hello \${payload.name}\`);
  }),
];
`;
}

function databaseText({ driver, end, urlVariable, takesClient }: Survey): string {
  const url = `process.env.${urlVariable}${end === 'ts' ? '!' : ''}`;
  const call = (client: string) => `drizzle(${takesClient ? client : `{ client: ${client} }`})`;
  if (driver === 'pg') {
    return `import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: ${url}, connectionTimeoutMillis: 10_000 });
// Without listeners a broken connection ends the process.
pool.on('connect', (client) => {
  client.on('error', ({ message }) => console.warn('A connection was lost:', message));
});
pool.on('error', () => {}); // the same error, for a connection that was idle

export const db = ${call('pool')};
`;
  }
  return `import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

export const db = ${call(`postgres(${url})`)};
`;
}
