import { readdir, readFile } from 'node:fs/promises';
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
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('say --yes') });
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
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('Everything is there already') });
  const line = (await readFile(join(cwd, 'src/db/schema.ts'), 'utf8')).split("'drizzle-queue/schema'");
  expect(line).toHaveLength(2);
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
  expect(await readFile(join(cwd, 'queue.config.ts'), 'utf8')).toContain(
    "import { database } from './src/db/index.js';",
  );
  expect(await files(join(cwd, 'src'))).not.toContain('db.ts');
});

test('needs Drizzle', async () => {
  const cwd = await cli.project({ 'drizzle.config.mjs': "export default { dialect: 'sqlite' };" });
  expect(await runCli(cli.bin, ['init'], { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is for sqlite'),
  });
});
