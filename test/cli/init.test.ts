import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createQueue } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { useCli } from './support/build-cli.ts';
import { hasTerminal, runCli, startInTerminal } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();

const schema =
  "import { pgTable, integer } from 'drizzle-orm/pg-core';\nexport const orders = pgTable('orders', { id: integer('id') });";
const app = {
  'package.json': '{ "type": "module", "dependencies": { "pg": "8" } }',
  'drizzle.config.ts': `export default { dialect: 'postgresql', schema: './src/db/schema.ts', out: './drizzle',
    dbCredentials: { url: process.env.DATABASE_URL } };`,
  'src/db/schema.ts': schema,
};
const files = async (folder: string) => (await readdir(folder, { recursive: true })).sort();

test('adds a schema line, a job, handlers, a worker and a config, which work at once', async () => {
  const cwd = await cli.project(app);
  const env = { DATABASE_URL: database.url };
  const dry = await runCli(cli.bin, ['init', '--dry-run', '--json'], { cwd, env });
  expect(
    JSON.parse(dry.stdout).changes.map(({ file, action }: { file: string; action: string }) => [
      file,
      action,
    ]),
  ).toEqual([
    ['src/db/schema.ts', 'append'],
    ['src/db.ts', 'create'],
    ['src/jobs.ts', 'create'],
    ['src/handlers.ts', 'create'],
    ['src/worker.ts', 'create'],
    ['queue.config.ts', 'create'],
  ]);
  const before = await files(cwd);
  const refused = await runCli(cli.bin, ['init'], { cwd, env });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('pass --yes') });
  expect(await files(cwd)).toEqual(before);

  const done = await runCli(cli.bin, ['init', '--yes'], { cwd, env });
  expect(done).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('npm install drizzle-queue'),
  });
  expect(await readFile(join(cwd, 'src/db/schema.ts'), 'utf8')).toBe(
    `${schema}\n\nexport * from 'drizzle-queue/schema';\n`,
  );
  const enqueued = await runCli(cli.bin, ['enqueue', 'greet', '{"name":"Ada"}'], { cwd, env });
  expect(enqueued).toMatchObject({ code: 0, stderr: '' });
  const worked = await runCli(cli.bin, ['work', '--drain'], { cwd, env });
  expect(worked).toMatchObject({ code: 0, stdout: expect.stringContaining('Hello Ada\n1 completed') });
  expect((await createQueue().list(database.db)).jobs).toMatchObject([{ kind: 'greet', state: 'completed' }]);

  // Again: nothing is left to do, and nothing is written twice.
  const again = await runCli(cli.bin, ['init', '--yes'], { cwd, env });
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('Everything is already there') });
  expect(again.stdout).toContain('drizzle-queue enqueue greet');
  const line = (await readFile(join(cwd, 'src/db/schema.ts'), 'utf8')).split("'drizzle-queue/schema'");
  expect(line).toHaveLength(2);
  await clearTables(database.client);
});

test.each([
  ['with tsx to install', {}, {}, 'npm install tsx\n  node --import tsx src/worker.ts\n'],
  [
    'with the files of its variables, the one that comes first in this command last',
    { '.env': 'A=1', '.env.local': 'A=2' },
    { tsx: '4' },
    ':\n  node --import tsx --env-file=.env --env-file=.env.local src/worker.ts\n',
  ],
  [
    'of Next.js, with the condition that server-only needs',
    {},
    { next: '16', tsx: '4' },
    'node --import tsx --conditions=react-server src/worker.ts\n',
  ],
  ['of Bun', { 'bun.lock': '', '.env': 'A=1' }, {}, ':\n  bun --env-file=.env src/worker.ts\n'],
])('says how to start the worker: %s', async (_, more, packages, command) => {
  const cwd = await cli.project({
    ...app,
    ...more,
    'package.json': JSON.stringify({ type: 'module', dependencies: { postgres: '3', ...packages } }),
  });
  const { stdout } = await runCli(cli.bin, ['init', '--yes'], { cwd });
  expect(stdout).toContain('The worker as a program of its own, as in production:\n');
  expect(stdout.endsWith(command)).toBe(true);
});

test.each([
  ['ES modules', 'module'],
  ['CommonJS', 'commonjs'],
])('what it writes runs in an app of %s whose database imports server-only', async (_, type) => {
  const cwd = await cli.project({
    ...app,
    'package.json': JSON.stringify({ type, dependencies: { postgres: '3' } }),
    'node_modules/server-only/package.json': JSON.stringify({
      exports: { '.': { 'react-server': './empty.js', default: './index.js' } },
    }),
    'node_modules/server-only/index.js': "throw new Error('This module cannot be imported from a client');",
    'node_modules/server-only/empty.js': '',
    'src/db/index.ts': `import 'server-only';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

export const db = drizzle({ client: postgres(process.env.DATABASE_URL ?? '') });
`,
  });
  const env = { DATABASE_URL: database.url };
  for (const args of [
    ['init', '--yes'],
    ['enqueue', 'greet', '{"name":"Ada"}'],
  ]) {
    expect(await runCli(cli.bin, args, { cwd, env })).toMatchObject({ code: 0, stderr: '' });
  }
  const worked = await runCli(cli.bin, ['work', '--drain'], { cwd, env });
  expect(worked).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('Hello Ada\n1 completed'),
  });
  await clearTables(database.client);
});

test.skipIf(!hasTerminal)('asks first', async () => {
  const cwd = await cli.project(app);
  const asking = startInTerminal(cli.bin, ['init'], { cwd });
  await asking.says('Write this? [y/N]');
  asking.write('n\r');
  expect((await asking.end()).code).toBe(1);
  expect(await files(cwd)).toEqual(await files(await cli.project(app)));
});

test('takes the database that the app has, under its name, and leaves alone what is there', async () => {
  const cwd = await cli.project({
    ...app,
    'tsconfig.json': '{ "compilerOptions": { "module": "nodenext" } }',
    'src/db/index.ts': 'export const database = drizzle(pool);\n',
    'src/jobs.ts': 'mine\n',
  });
  expect(await runCli(cli.bin, ['init', '--yes'], { cwd })).toMatchObject({ code: 0 });
  expect(await readFile(join(cwd, 'src/jobs.ts'), 'utf8')).toBe('mine\n');
  // What it has suggested to enqueue is not there any more.
  await writeFile(join(cwd, 'src/queue/jobs.ts'), "import { createQueue } from 'drizzle-queue';\n");
  const again = await runCli(cli.bin, ['init', '--yes'], { cwd });
  expect(again.stdout).toContain('drizzle-queue work --watch');
  expect(again.stdout).not.toContain('greet');
  expect(await readFile(join(cwd, 'queue.config.ts'), 'utf8')).toContain(
    "import { database } from './src/db/index.js';",
  );
  expect(await files(join(cwd, 'src'))).not.toContain('db.ts');
});

const made = async (files: Readonly<Record<string, string>>) => {
  const cwd = await cli.project(files);
  const { stdout, stderr, code } = await runCli(cli.bin, ['init', '--dry-run', '--json'], {
    cwd,
    env: { DATABASE_URL: 'postgres://localhost/none' },
  });
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  const { changes, notes }: { changes: { file: string; text: string }[]; notes: string[] } =
    JSON.parse(stdout);
  return { files: changes.map(({ file }) => file), texts: changes.map(({ text }) => text).join(''), notes };
};
const drizzleConfig = (path: string) => `export default { dialect: 'postgresql', schema: '${path}' };`;
const exported = "import { drizzle } from 'drizzle-orm/node-postgres';\nexport const db = drizzle(pool);\n";

test.each([
  ['Nuxt', { nuxt: '4' }, 'server/db/schema.ts', ['app/app.vue'], 'server'],
  ['Nuxt, with its tables at the root', { nuxt: '4' }, 'db/schema.ts', ['server/api/a.ts'], 'server'],
  ['Next.js', { next: '16' }, 'lib/db/schema.ts', ['app/page.tsx'], 'lib'],
  [
    'Next.js, with its tables at the root',
    { next: '16' },
    'db/schema.ts',
    ['app/page.tsx', 'lib/a.ts'],
    'lib',
  ],
  ['Next.js, with nothing but an app', { next: '16' }, 'db/schema.ts', ['app/page.tsx'], '.'],
  ['create-t3-app', { next: '16' }, 'src/server/db/schema.ts', ['src/app/page.tsx'], 'src/server'],
  ['SvelteKit', {}, 'src/lib/server/db/schema.ts', ['src/routes/+page.ts'], 'src/lib/server'],
  ['tables by feature', {}, 'src/modules/users/schema.ts', [], 'src'],
  ['tables in folders', {}, 'src/db/schema/index.ts', [], 'src'],
  ['tables that both sides share', {}, 'shared/schema.ts', ['server/a.ts', 'client/a.ts'], 'server'],
  ['a library beside its build', {}, 'db/schema.ts', ['lib/a.js'], '.'],
])('writes where an app has the code of its server: %s', async (_, dependencies, path, others, home) => {
  const planned = await made({
    'package.json': JSON.stringify({ type: 'module', dependencies }),
    'drizzle.config.ts': drizzleConfig(`./${path}`),
    [path]: schema,
    [join(path, '../index.ts')]: path.endsWith('index.ts') ? schema : exported,
    ...Object.fromEntries(others.map((file) => [file, ''])),
  });
  const names = ['jobs.ts', 'handlers.ts', 'worker.ts'].map((name) => join(home, name));
  expect(planned.files).toEqual(expect.arrayContaining([path, ...names, 'queue.config.ts']));
  expect(planned.notes).toEqual([]);
});

const nest = {
  'package.json': '{ "dependencies": { "@nestjs/core": "11", "pg": "8" } }',
  'drizzle.config.ts': drizzleConfig('./src/db/schema.ts'),
  'src/db/schema.ts': schema,
};
const provider = `import { drizzle } from 'drizzle-orm/node-postgres';
export const DB = Symbol('DB');
export const provider = { provide: DB, useFactory: (pool: Pool) => drizzle(pool, { schema }), inject: [Pool] };
`;

test('opens no second database where NestJS injects one, and says how to go on', async () => {
  const cwd = await cli.project({ ...nest, 'src/db/db.module.ts': provider });
  const { code, stdout } = await runCli(cli.bin, ['init', '--yes'], { cwd });
  expect(code).toBe(0);
  expect(await files(join(cwd, 'src'))).toEqual([
    'db',
    'db/db.module.ts',
    'db/schema.ts',
    'queue',
    'queue/jobs.ts',
  ]);
  expect(await readFile(join(cwd, 'src/db/schema.ts'), 'utf8')).toContain("from 'drizzle-queue/schema'");
  expect(stdout).toContain('note: NestJS injects your database');
  expect(stdout).toContain('guides/nestjs');
  // What follows needs no handlers.
  expect(stdout).toContain('drizzle-kit migrate');
  expect(stdout).not.toContain('drizzle-queue work');

  const plain = await made({ ...nest, 'src/db/index.ts': exported });
  expect(plain.files).toEqual(expect.arrayContaining(['src/jobs.ts', 'src/worker.ts', 'queue.config.ts']));
});

test('a new database hides no module of the app, and a build keeps its layout', async () => {
  const { files, texts, notes } = await made({
    ...app,
    'tsconfig.json': '{ "exclude": ["drizzle.config.ts"] }',
    'src/db/index.ts':
      "import { drizzle } from 'drizzle-orm/node-postgres';\nexport const open = () => drizzle(pool);\n",
  });
  expect(files).toContain('src/queue-db.ts');
  expect(texts).toContain("import { db } from './queue-db';");
  expect(notes).toEqual([
    'src/db/index.ts opens a database and exports none, so src/queue-db.ts opens one for the worker',
    'tsconfig.json excludes drizzle.config.ts: exclude queue.config.ts there as well',
  ]);
});

test('finds a database that is exported below', async () => {
  const { files, texts } = await made({
    ...app,
    'src/db/index.ts':
      "import { drizzle } from 'drizzle-orm/node-postgres';\nconst main = drizzle(pool);\nexport { main };\n",
    'src/db/test/index.ts': exported,
  });
  expect(files).not.toContain('src/db.ts');
  expect(texts).toContain("import { main } from './db/index';");
});

test('needs Drizzle', async () => {
  const cwd = await cli.project({ 'drizzle.config.mjs': "export default { dialect: 'sqlite' };" });
  expect(await runCli(cli.bin, ['init'], { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is for sqlite'),
  });
});

const unnoted = { DATABASE_URL: 'postgres://localhost/none' };
const planned = async (files: Readonly<Record<string, string>>, args: readonly string[] = []) => {
  const cwd = await cli.project(files);
  const ended = await runCli(cli.bin, ['init', '--dry-run', '--json', ...args], { cwd, env: unnoted });
  if (ended.code !== 0) return { files: [], texts: '', notes: [], stderr: ended.stderr };
  const { changes, notes }: { changes: { file: string; text: string }[]; notes: string[] } = JSON.parse(
    ended.stdout,
  );
  return {
    files: changes.map(({ file }) => file),
    texts: changes.map(({ text }) => text).join(''),
    notes,
    stderr: ended.stderr,
  };
};
const configWith = (url: string, schemaPath = './src/db/schema.ts') =>
  `export default { dialect: 'postgresql', schema: '${schemaPath}', dbCredentials: { url: ${url} } };`;

test.each([
  ['process.env.POSTGRES_URL!', 'POSTGRES_URL'],
  ["process.env['NEON_URL'] ?? ''", 'NEON_URL'],
  ["process.env.PG_URI + '?sslmode=require'", 'PG_URI'],
])('the database that it writes takes the variable of drizzle.config: %s', async (url, name) => {
  const { texts, notes } = await planned({ ...app, 'drizzle.config.ts': configWith(url) });
  expect(texts).toContain(`process.env.${name}!`);
  expect(texts).not.toContain('DATABASE_URL');
  expect(notes).toEqual([expect.stringMatching(`^${name} is not set here, .* --env-file FILE`)]);
});

test.each([
  ['0.34.1', 'drizzle(pool)'],
  ['0.45.4', 'drizzle(pool)'],
  ['1.0.0-rc.5', 'drizzle({ client: pool })'],
])('the database that it writes compiles on drizzle-orm %s', async (version, call) => {
  const { texts } = await planned({
    ...app,
    'node_modules/drizzle-orm/package.json': `{ "name": "drizzle-orm", "version": "${version}" }`,
  });
  expect(texts).toContain(`export const db = ${call};`);
});

test('finds a drizzle config below, by a script, or by its name', async () => {
  const elsewhere = {
    'package.json': app['package.json'],
    'src/db/schema.ts': schema,
    'config/drizzle.config.ts': app['drizzle.config.ts'],
  };
  expect((await planned(elsewhere)).files).toContain('src/jobs.ts');

  const two = { ...elsewhere, 'old/drizzle.config.ts': configWith('process.env.DATABASE_URL') };
  expect((await planned(two)).stderr).toMatch(
    /more than one drizzle config: name one with --drizzle-config \((config|old)\/drizzle\.config\.ts, /,
  );
  expect((await planned(two, ['--drizzle-config', 'config/drizzle.config.ts'])).files).toContain(
    'src/jobs.ts',
  );
  const scripts = { generate: 'drizzle-kit generate --config=config/drizzle.config.ts' };
  const scripted = { ...two, 'package.json': JSON.stringify({ type: 'module', scripts }) };
  expect((await planned(scripted)).files).toContain('src/jobs.ts');
  expect((await planned(two, ['--drizzle-config', 'none.ts'])).stderr).toContain('none.ts');

  const cwd = await cli.project(elsewhere);
  const { stdout } = await runCli(cli.bin, ['init', '--yes'], { cwd, env: unnoted });
  expect(stdout).toContain('npx drizzle-kit migrate --config=config/drizzle.config.ts');
});

test.each([
  [{ 'pnpm-lock.yaml': '' }, 'pnpm add drizzle-queue', 'pnpm exec drizzle-kit generate'],
  [{ 'yarn.lock': '' }, 'yarn add drizzle-queue', 'yarn drizzle-kit generate'],
  [{ 'bun.lock': '' }, 'bun add drizzle-queue', 'bunx drizzle-kit generate'],
  [{ 'package-lock.json': '{}' }, 'npm install drizzle-queue', 'npx drizzle-kit generate'],
])("prints the commands of the project's package manager: %o", async (lock, add, run) => {
  const cwd = await cli.project({ ...app, ...lock });
  const { stdout } = await runCli(cli.bin, ['init', '--yes'], { cwd, env: unnoted });
  expect(stdout).toContain(`  ${add}\n  ${run}`);
});

test.each([
  ['a folder of jobs', { 'src/jobs/mail.ts': '' }, 'src/jobs'],
  ['a folder of workers', { 'src/workers/mail.ts': '' }, 'src/queue'],
  ['a file of that name', { 'src/worker.ts': "import { Worker } from 'bullmq';" }, 'src/queue'],
  ['a queue of its own', { 'src/queue/jobs.ts': "import { Queue } from 'bullmq';" }, 'src/drizzle-queue'],
  ['what it has made', { 'src/jobs.ts': "import { createQueue } from 'drizzle-queue';" }, 'src'],
])('puts no file beside %s', async (_, there, home) => {
  const { files } = await planned({ ...app, ...there });
  const names = ['jobs.ts', 'handlers.ts', 'worker.ts'].map((name) => join(home, name));
  expect(files).toEqual(expect.arrayContaining(names));
});
