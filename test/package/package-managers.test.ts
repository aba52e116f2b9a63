import { cp, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createTestDatabase } from '../support/test-database.ts';
import type {} from './global-setup.ts';
import { run } from './support/run-program.ts';
import { tools } from './support/tools.ts';

const { tarball } = inject('packed');
const fixture = fileURLToPath(new URL('fixtures/monorepo', import.meta.url));

interface Manager {
  readonly name: string;
  readonly install: readonly string[];
  /** Runs a program of the app's packages. */
  readonly exec: readonly string[];
  /** Runs the app. */
  readonly node: string;
  /** Keeps what it downloads in this folder. */
  env(home: string, registry: string): Readonly<Record<string, string>>;
}

const managers: readonly Manager[] = [
  {
    name: 'pnpm',
    install: [tools.pnpm, 'install', '--no-frozen-lockfile', '--prefer-offline'],
    exec: [tools.pnpm, 'exec'],
    node: tools.node22,
    env: (home) => ({
      XDG_CACHE_HOME: join(home, 'cache'),
      XDG_DATA_HOME: join(home, 'data'),
      XDG_STATE_HOME: join(home, 'state'),
    }),
  },
  {
    name: 'Yarn 4 with node_modules',
    install: [tools.yarn, 'install'],
    exec: [tools.yarn],
    node: tools.node22,
    env: (home, registry) => ({
      YARN_NODE_LINKER: 'node-modules',
      YARN_GLOBAL_FOLDER: join(home, 'yarn'),
      YARN_NPM_REGISTRY_SERVER: registry,
      YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
      YARN_ENABLE_TELEMETRY: 'false',
    }),
  },
  {
    name: 'Bun',
    install: [tools.bun, 'install'],
    exec: [tools.bunx],
    node: tools.bun,
    env: (home) => ({ BUN_INSTALL_CACHE_DIR: join(home, 'bun') }),
  },
];

describe.each(managers)('a monorepo installed by $name', (manager) => {
  let home = '';
  let app = '';
  let env: Readonly<Record<string, string>> = {};

  const inApp = ([program = '', ...args]: readonly string[], more = {}) =>
    run(program, args, { cwd: app, env: { ...env, ...more } });

  beforeAll(async () => {
    home = await realpath(await mkdtemp(join(tmpdir(), 'drizzle-queue-manager-')));
    const root = join(home, 'monorepo');
    await cp(fixture, root, { recursive: true, filter: (path) => !path.endsWith('/node_modules') });
    app = join(root, 'packages/app');
    const manifest = join(app, 'package.json');
    const text = await readFile(manifest, 'utf8');
    await writeFile(manifest, text.replace('TARBALL', `file:${tarball}`));
    const registry = (await run('npm', ['config', 'get', 'registry'], { cwd: root })).trim();
    env = manager.env(home, registry);
    const [program = '', ...args] = manager.install;
    await run(program, args, { cwd: root, env });
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  test('has two copies of drizzle-orm', async () => {
    // One for each version of a peer of drizzle-orm: the two packages pin two versions of @opentelemetry/api.
    const require = (manifest: string) => createRequire(manifest);
    const library = await realpath(dirname(require(join(app, 'package.json')).resolve('drizzle-queue')));
    const database = join(app, '../database/package.json');
    const copies = [join(library, 'index.js'), database].map((from) => require(from).resolve('drizzle-orm'));
    expect(new Set(copies).size).toBe(2);
  });

  test('compiles, with a transaction of one package passed to the queue of the other', async () => {
    expect(await inApp([...manager.exec, 'tsc', '--pretty', 'false'])).toBe('');
  });

  test('enqueues a job and runs it to its end', async () => {
    const database = await createTestDatabase();
    try {
      const said = await inApp([manager.node, 'app.ts'], { DATABASE_URL: database.url });
      expect(JSON.parse(said)).toEqual({ greeted: ['Ada'], state: 'completed' });
    } finally {
      await database.drop();
    }
  });

  test('runs the command', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'));
    expect((await inApp([...manager.exec, 'drizzle-queue', '--version'])).trim()).toBe(version);
  });
});
