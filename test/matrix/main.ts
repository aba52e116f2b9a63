import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  closeDatabase,
  createDatabase,
  type Database,
  migrateControl,
  migrateDatabase,
  migrateWorkflows,
} from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/embedded-postgres.ts';
import { hasPostgres } from '../support/postgres-binaries.ts';
import { bundle } from './bundle.ts';
import { type Combination, fullProduct, type Postgres, pairwise, titleOf } from './combinations.ts';
import { showEdge, workerd } from './edge.ts';
import { startNeonEndpoint } from './neon-endpoint.ts';
import { printTable } from './print-table.ts';
import { programOf } from './runtimes.ts';
import { type Shown, show } from './show.ts';

/** How many combinations run at once: each is a process that waits for its server most of the time. */
const AT_ONCE = 3;

/** Runs the matrix; answers the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const only = args.find((arg) => arg.startsWith('--only='))?.slice('--only='.length);
  const workers = Number(args.find((arg) => arg.startsWith('--workers='))?.slice('--workers='.length) ?? 1);
  const known = args.filter((arg) => /^--(all|list|only=.*|workers=[1-9]\d*)$/.test(arg));
  if (known.length !== args.length) {
    console.error('Usage: npm run test:matrix -- [--all] [--only=TEXT] [--workers=N] [--list]');
    return 2;
  }
  const possible = fullProduct().filter(isInstalled);
  // Chosen from what is left: a combination that is not installed here must not take its pairs along.
  const chosen = (args.includes('--all') ? possible : pairwise(possible)).filter(
    (combination) => only === undefined || titleOf(combination).includes(only),
  );
  const missing = new Set(
    fullProduct()
      .filter((one) => !isInstalled(one))
      .flatMap(whatIsMissing),
  );
  if (missing.size > 0) {
    console.log(`npm has none of these for this platform: ${[...missing].join(', ')}`);
    // For this one it has all: an install that went wrong must not shrink the matrix unnoticed.
    if (process.platform === 'linux' && process.arch === 'x64') return 1;
  }
  console.log(`${chosen.length} of ${possible.length} combinations:`);
  for (const combination of chosen) console.log(`  ${titleOf(combination)}`);
  if (args.includes('--list')) return 0;

  const startedAt = performance.now();
  const types = checkTypes();
  const { shown, edge } = await showAll(chosen, workers);
  const wellTyped = await types;
  printTable(shown, performance.now() - startedAt);
  if (edge !== undefined) console.log(`FAILED  enqueue on the edge: ${edge}`);
  const passed = edge === undefined && shown.every(({ failures }) => failures.length === 0);
  return wellTyped && chosen.length > 0 && passed ? 0 : 1;
}

/**
 * postgres.js on Bun now and then keeps a connection that the server has ended, and each query that it gives to that one
 * fails until the process ends: in 2 of some 20 runs, and never on Node.js. See docs/drivers.md.
 */
function isUnsteady({ driver, runtime }: Combination): boolean {
  return driver === 'postgres.js' && runtime === 'Bun';
}

interface All {
  readonly shown: readonly Shown[];
  /** What went wrong when a function on the edge enqueued, if anything. */
  readonly edge: string | undefined;
}

async function showAll(chosen: readonly Combination[], workers: number): Promise<All> {
  const bundles = { '0.34': await bundle('0.34'), '0.45': await bundle('0.45'), '1.0': await bundle('1.0') };
  const endpoint = await startNeonEndpoint();
  const servers = new Map<Postgres, Promise<MigratedServer>>();
  const newDatabase = async (version: Exclude<Postgres, 'PGlite'>): Promise<Database> => {
    const starting = servers.get(version) ?? startMigrated(version);
    servers.set(version, starting);
    const { server, template } = await starting;
    return await createDatabase(server.url, { template });
  };
  const migrations = readMigrations();
  const shown: Shown[] = [];
  const open = [...chosen];
  const work = async (): Promise<void> => {
    for (let combination = open.shift(); combination !== undefined; combination = open.shift()) {
      const { drizzle, driver, runtime, postgres } = combination;
      const showOne = async (): Promise<Shown> => {
        const database = postgres === 'PGlite' ? undefined : await newDatabase(postgres);
        const result = await show(combination, {
          command: [programOf(runtime) ?? '', bundles[drizzle]],
          request: { drizzle, driver, workers, url: database?.url ?? '', neon: endpoint.address, migrations },
        });
        await database?.drop();
        return result;
      };
      let result = await showOne();
      if (result.failures.length > 0 && isUnsteady(combination)) {
        console.log(`again   ${titleOf(combination)}, which has failed:\n${result.failures.join('\n')}`);
        result = await showOne();
      }
      shown.push(result);
      console.log(`${result.failures.length === 0 ? 'passed' : 'FAILED'}  ${titleOf(combination)}`);
    }
  };
  let edge: string | undefined;
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const program = workerd();
    if (program === undefined) console.log('workerd: npm has none for this platform');
    else {
      const database = await newDatabase('18');
      edge = await showEdge(program, { url: database.url, neon: endpoint.address });
      await database.drop();
      console.log(`${edge === undefined ? 'passed' : 'FAILED'}  enqueue in workerd over neon-http`);
    }
  } finally {
    await endpoint.close();
    for (const starting of servers.values()) await (await starting).server.stop();
  }
  return { shown: chosen.flatMap((one) => shown.filter(({ combination }) => combination === one)), edge };
}

interface MigratedServer {
  readonly server: PostgresServer;
  /** The name of a database with the library's tables, to be copied. */
  readonly template: string;
}

async function startMigrated(version: Exclude<Postgres, 'PGlite'>): Promise<MigratedServer> {
  const server = await startPostgres({ version });
  const template = await createDatabase(server.url);
  await migrateDatabase(template.url);
  await migrateControl(template.url);
  await migrateWorkflows(template.url);
  await closeDatabase(server.url, template.name);
  return { server, template: template.name };
}

/** Those of the library's own tables, of what controls a queue, and of metrics. */
function readMigrations(): string[] {
  return ['drizzle', 'drizzle-control', 'drizzle-metrics', 'drizzle-workflows'].flatMap((directory) => {
    const folder = fileURLToPath(new URL(`../../${directory}/`, import.meta.url));
    const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
    return names.sort().map((name) => readFileSync(`${folder}${name}`, 'utf8'));
  });
}

function isInstalled(combination: Combination): boolean {
  return whatIsMissing(combination).length === 0;
}

function whatIsMissing({ runtime, postgres }: Combination): string[] {
  return [
    ...(programOf(runtime) === undefined ? [runtime] : []),
    ...(postgres !== 'PGlite' && !hasPostgres(postgres) ? [`PostgreSQL ${postgres}`] : []),
  ];
}

/** The programs of this folder, which the root's check leaves out, because it must pass before their packages are installed. */
function checkTypes(): Promise<boolean> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const tsc = spawn(process.execPath, [`${root}node_modules/typescript/bin/tsc`, '-p', 'test/matrix'], {
    cwd: root,
    stdio: 'inherit',
  });
  return new Promise((resolve) => tsc.once('exit', (code) => resolve(code === 0)));
}
