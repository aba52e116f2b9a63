import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { full } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';
import type {} from './global-setup.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { createProject, type Project } from './support/project.ts';
import { run } from './support/run-program.ts';
import { tools } from './support/tools.ts';

const POOLED = { pg: '8.23.1', '@types/pg': '8.23.1' };

/** drizzle-orm and the drizzle-kit that belongs to it. */
const VERSIONS = [
  { orm: '0.34.1', kit: '0.25.0' },
  { orm: '0.45.4', kit: '0.31.11' },
  { orm: '1.0.0-rc.5', kit: '1.0.0-rc.5' },
] as const;

interface Shape {
  readonly name: string;
  /** What its package.json names, by which `init` knows it. */
  readonly packages: Readonly<Record<string, string>>;
  readonly schema: string;
  /** Where the first job must be. */
  readonly jobs: string;
  /** A module with `db` that the app has. */
  readonly database?: string;
  readonly compilerOptions?: Readonly<Record<string, unknown>>;
}

const SHAPES: readonly Shape[] = [
  { name: 'a server', packages: { pg: '8' }, schema: 'src/db/schema.ts', jobs: 'src/jobs.ts' },
  {
    name: 'a server that Node.js runs as it is',
    packages: { postgres: '3' },
    schema: 'src/schema.ts',
    jobs: 'src/jobs.ts',
    compilerOptions: { module: 'nodenext', moduleResolution: 'nodenext', allowImportingTsExtensions: true },
  },
  {
    name: 'Next.js',
    packages: { next: '16', postgres: '3' },
    schema: 'lib/db/schema.ts',
    jobs: 'lib/jobs.ts',
    database: 'lib/db/index.ts',
  },
  { name: 'Nuxt', packages: { nuxt: '4', pg: '8' }, schema: 'server/db/schema.ts', jobs: 'server/jobs.ts' },
  {
    name: 'SvelteKit',
    packages: { '@sveltejs/kit': '2', postgres: '3' },
    schema: 'src/lib/server/db/schema.ts',
    jobs: 'src/lib/server/jobs.ts',
  },
  {
    name: 'NestJS that exports its database',
    packages: { '@nestjs/core': '11', pg: '8' },
    schema: 'src/db/schema.ts',
    jobs: 'src/jobs.ts',
    database: 'src/db/index.ts',
  },
];

/** As people write it by the docs of Drizzle: 1.0 wants the client in an object, which 0.34 does not know. */
function databaseOf({ packages }: Shape, orm: string): string {
  const url = "process.env.POSTGRES_URL ?? ''";
  const [driver, imported, client] =
    packages.pg === undefined
      ? ['postgres-js', "import postgres from 'postgres';", `postgres(${url})`]
      : ['node-postgres', "import pg from 'pg';", `new pg.Pool({ connectionString: ${url} })`];
  return `import { drizzle } from 'drizzle-orm/${driver}';
${imported}

const client = ${client};
export const db = drizzle(${orm.startsWith('1') ? '{ client }' : 'client'});
`;
}

const { tarball } = inject('packed');
const landing = process.env.PACKAGE === 'landing';

describe.each(VERSIONS)('what init writes, with drizzle-orm $orm', ({ orm, kit }) => {
  let home = '';
  let installed: Project;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'drizzle-queue-init-'));
    installed = await createProject(join(home, 'installed'), tarball);
    const packages = { 'drizzle-orm': orm, 'drizzle-kit': kit, postgres: '3.4.9', tsx: '4.23.15', ...POOLED };
    await installed.install([
      ...Object.entries(packages).map(([name, version]) => `${name}@${version}`),
      '@types/node@20.19.43',
    ]);
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  // The oldest version differs most. Each night all shapes run with each version, and before a landing one.
  const most = orm === VERSIONS[0].orm ? SHAPES.length : 2;
  const shapes = SHAPES.slice(0, full ? SHAPES.length : landing ? 1 : most);

  describe.each(shapes)('in $name', (shape) => {
    const database = useTestDatabase({ template: false });

    test('compiles, is migrated, and runs its first job', async () => {
      const app = await mkdtemp(join(home, 'app-'));
      const write = async (path: string, text: string) => {
        await mkdir(dirname(join(app, path)), { recursive: true });
        await writeFile(join(app, path), text);
      };
      const packages = { ...shape.packages, 'drizzle-orm': orm };
      await write('package.json', JSON.stringify({ type: 'module', dependencies: packages }));
      await write(
        'drizzle.config.ts',
        `import { defineConfig } from 'drizzle-kit';
export default defineConfig({
  dialect: 'postgresql',
  schema: './${shape.schema}',
  dbCredentials: { url: process.env.POSTGRES_URL ?? '' },
});
`,
      );
      await write(
        shape.schema,
        "import { integer, pgTable } from 'drizzle-orm/pg-core';\n\nexport const orders = pgTable('orders', { id: integer('id') });\n",
      );
      if (shape.database !== undefined) await write(shape.database, databaseOf(shape, orm));
      const compilerOptions = {
        ...{ target: 'es2022', module: 'esnext', moduleResolution: 'bundler' },
        ...{ strict: true, skipLibCheck: true, noEmit: true, types: ['node'] },
        ...shape.compilerOptions,
      };
      await write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['**/*.ts'] }));
      await symlink(join(installed.directory, 'node_modules'), join(app, 'node_modules'));

      const env = { POSTGRES_URL: database.url };
      const npx = (...args: string[]) => run('npx', ['--no-install', ...args], { cwd: app, env });
      expect(await npx('drizzle-queue', 'init', '--yes')).toContain(shape.jobs);
      await run(process.execPath, [tools.typescript['7.0'], '--pretty', 'false'], { cwd: app });
      await npx('drizzle-kit', 'generate');
      await npx('drizzle-kit', 'migrate');
      await npx('drizzle-queue', 'enqueue', 'greet', '{ "name": "Ada" }');
      expect(await npx('drizzle-queue', 'work', '--drain')).toContain('Hello Ada');
      expect(await finishedJobs(database, 1)).toEqual([{ kind: 'greet', state: 'completed' }]);
    });
  });
});
