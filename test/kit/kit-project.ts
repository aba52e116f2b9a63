import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterEach } from 'vitest';

const run = promisify(execFile);

/** Where an app's schema imports `drizzle-queue/schema` from: a copy, so that it finds the app's own drizzle-orm. */
export const schemaEntry = './library/core/schema/index.ts';
export const controlEntry = './library/features/control/index.ts';
export const metricsEntry = './library/features/metrics/schema/index.ts';

const sources = fileURLToPath(new URL('../../src', import.meta.url));
/** What the library's tables are made of. */
const SCHEMAS = ['core/schema', 'features/control', 'features/metrics/schema'];
const nodeModules = fileURLToPath(new URL('../../node_modules', import.meta.url));
const tsx = new URL('../../node_modules/tsx/dist/loader.mjs', import.meta.url).href;

/** Prints what drizzle-orm sees in a schema that drizzle-kit has pulled. */
const PRINT_PULLED = `
  import { is } from 'drizzle-orm';
  import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
  import * as schema from './drizzle/schema.ts';
  const tables = Object.values(schema).filter((value) => is(value, PgTable)).map((table) => getTableConfig(table));
  console.log(JSON.stringify(Object.fromEntries(tables.map(({ schema, name, columns }) => [
    schema === undefined ? name : schema + '.' + name,
    columns.map((column) => column.name).sort(),
  ]))));
`;

/** A major of drizzle-kit: 0.31 belongs to drizzle-orm 0.45, and 1.0 to 1.0. */
export type KitMajor = '0.31' | '1.0';

/** Where drizzle-kit of each major is installed, with the drizzle-orm that belongs to it. */
const nodeModulesOf: Readonly<Record<KitMajor, string>> = {
  '0.31': nodeModules,
  '1.0': join(nodeModules, 'drizzle-queue-tests-drizzle-v1', 'node_modules'),
};

/** The one that belongs to the drizzle-orm that the tests run with. */
export const kitMajor: KitMajor = process.env.DRIZZLE === 'v1' ? '1.0' : '0.31';

/** What an app's directory contains. */
export interface KitProjectOptions {
  /** The text of its Drizzle schema. */
  readonly schema: string;
  readonly databaseUrl?: string;
  /** The Postgres schemas that drizzle-kit looks at, when not all that it looks at by itself. */
  readonly schemaFilter?: readonly string[];
}

/** An app's directory in which drizzle-kit runs, as a process of its own. */
export class KitProject {
  private constructor(readonly directory: string) {}

  static async create({ schema, databaseUrl, schemaFilter }: KitProjectOptions): Promise<KitProject> {
    const project = new KitProject(await mkdtemp(join(tmpdir(), 'drizzle-queue-kit-')));
    await project.install(kitMajor);
    for (const folder of SCHEMAS)
      await cp(join(sources, folder), join(project.directory, 'library', folder), { recursive: true });
    await project.writeSchema(schema);
    const config = {
      dialect: 'postgresql',
      schema: './schema.ts',
      out: './drizzle',
      ...(databaseUrl !== undefined && { dbCredentials: { url: databaseUrl } }),
      ...(schemaFilter !== undefined && { schemaFilter }),
    };
    await writeFile(
      join(project.directory, 'drizzle.config.ts'),
      `export default ${JSON.stringify(config)};`,
    );
    return project;
  }

  /** Installs drizzle-kit and drizzle-orm of this major, in the place of another. */
  async install(major: KitMajor): Promise<void> {
    const link = join(this.directory, 'node_modules');
    await rm(link, { force: true });
    await symlink(nodeModulesOf[major], link, 'junction');
  }

  async writeSchema(text: string): Promise<void> {
    await writeFile(join(this.directory, 'schema.ts'), text);
  }

  /** Takes over migrations that were made elsewhere. */
  async copyMigrations(from: string): Promise<void> {
    await cp(from, join(this.directory, 'drizzle'), { recursive: true });
  }

  /** The paths of its migrations, oldest first: `0000_name.sql` in 0.31, and `TIME_name/migration.sql` in 1.0. */
  async #migrationPaths(): Promise<string[]> {
    const folder = join(this.directory, 'drizzle');
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    return names
      .filter((name) => name.endsWith('.sql'))
      .sort()
      .map((name) => join(folder, name));
  }

  /** The SQL of its migrations, oldest first. */
  async migrations(): Promise<string[]> {
    const paths = await this.#migrationPaths();
    return await Promise.all(paths.map((path) => readFile(path, 'utf8')));
  }

  /** Runs `drizzle-kit generate`; answers what it says. */
  async generate(): Promise<string> {
    return await this.#kit('generate');
  }

  /** Adds a custom migration with this SQL, as the pages say: on a new line. */
  async generateCustom(name: string, sql: string): Promise<void> {
    await this.#kit('generate', '--custom', `--name=${name}`);
    const path = (await this.#migrationPaths()).find((path) => path.includes(name));
    if (path === undefined) throw new Error(`drizzle-kit made no migration ${name}`);
    await writeFile(path, `${await readFile(path, 'utf8')}\n${sql}`);
  }

  async migrate(): Promise<void> {
    await this.#kit('migrate');
  }

  /** Runs `drizzle-kit check`, which looks whether the migrations fit together; answers what it says. */
  async check(): Promise<string> {
    return await this.#kit('check');
  }

  /** Runs `drizzle-kit up`, which makes migrations of an older drizzle-kit readable. */
  async up(): Promise<string> {
    return await this.#kit('up');
  }

  /** Runs `drizzle-kit pull`, and the schema that it has written; answers the names of the columns of each table in it, sorted. */
  async pull(): Promise<Record<string, string[]>> {
    await this.#kit('pull');
    await writeFile(join(this.directory, 'pulled.ts'), PRINT_PULLED);
    const { stdout } = await run(process.execPath, ['--import', tsx, 'pulled.ts'], {
      cwd: this.directory,
      env: withoutNodeOptions(),
    });
    return JSON.parse(stdout);
  }

  /** Runs `drizzle-kit push`; answers the statements that it thought necessary, and carried out. */
  async push(): Promise<string[]> {
    const said = await this.#kit('push', '--verbose');
    if (said.includes('No changes detected')) return [];
    if (!said.includes('Changes applied'))
      throw new Error(`drizzle-kit push did not come to an end:\n${said}`);
    return said.match(/^ *[A-Z]{2,} .*;$/gm)?.map((statement) => statement.trim()) ?? [said];
  }

  async #kit(...args: string[]): Promise<string> {
    const program = join(this.directory, 'node_modules', 'drizzle-kit', 'bin.cjs');
    const { stdout, stderr } = await run(process.execPath, [program, ...args, '--config=drizzle.config.ts'], {
      cwd: this.directory,
      env: withoutNodeOptions(),
      // A question would wait for its answer until then.
      timeout: 60_000,
    });
    return stripVTControlCharacters(stdout + stderr);
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** NODE_OPTIONS may name loaders that are meant for the tests only. */
function withoutNodeOptions(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...env } = process.env;
  return env;
}

/**
 * drizzle-kit 0.31 reads the columns of a composite primary key in whatever order Postgres answers, and then may find it changed
 * (drizzle-team/drizzle-orm#6078). 1.0 reads them in order, so there nothing is forgiven.
 */
export function isPrimaryKeyAgain(statement: string): boolean {
  if (kitMajor !== '0.31') return false;
  return /^ALTER TABLE \S+ (DROP CONSTRAINT "\w+_pkey"|ADD CONSTRAINT "\w+_pkey" PRIMARY KEY\(.*\));$/.test(
    statement,
  );
}

/** Gives the tests of a file apps' directories, which are removed after each test. */
export function useKitProjects(): (options: KitProjectOptions) => Promise<KitProject> {
  const projects: KitProject[] = [];
  afterEach(async () => {
    await Promise.all(projects.splice(0).map((project) => project.remove()));
  });
  return async (options) => {
    const project = await KitProject.create(options);
    projects.push(project);
    return project;
  };
}
