import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';

const run = promisify(execFile);

/** The entry that an app knows as `drizzle-queue/schema`. */
export const schemaEntry = fileURLToPath(new URL('../../src/schema/index.ts', import.meta.url));

const nodeModules = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** What an app's directory contains. */
export interface KitProjectOptions {
  /** The text of its Drizzle schema. */
  readonly schema: string;
  readonly databaseUrl?: string;
  /** The Postgres schemas that drizzle-kit looks at, when not only `public`. */
  readonly schemaFilter?: readonly string[];
}

/** An app's directory in which drizzle-kit runs, as a process of its own. */
export class KitProject {
  private constructor(readonly directory: string) {}

  static async create({ schema, databaseUrl, schemaFilter }: KitProjectOptions): Promise<KitProject> {
    const project = new KitProject(await mkdtemp(join(tmpdir(), 'drizzle-queue-kit-')));
    await symlink(nodeModules, join(project.directory, 'node_modules'), 'junction');
    await writeFile(join(project.directory, 'schema.ts'), schema);
    const config = {
      dialect: 'postgresql',
      schema: './schema.ts',
      out: './drizzle',
      ...(databaseUrl !== undefined && { dbCredentials: { url: databaseUrl } }),
      ...(schemaFilter !== undefined && { schemaFilter }),
    };
    await writeFile(join(project.directory, 'drizzle.config.json'), JSON.stringify(config));
    return project;
  }

  /** Takes over migrations that were made elsewhere. */
  async copyMigrations(from: string): Promise<void> {
    await cp(from, join(this.directory, 'drizzle'), { recursive: true });
  }

  /** The SQL of its migrations, oldest first. */
  async migrations(): Promise<string[]> {
    const names = await readdir(join(this.directory, 'drizzle'));
    const sqlFiles = names.filter((name) => name.endsWith('.sql')).sort();
    return await Promise.all(sqlFiles.map((name) => readFile(join(this.directory, 'drizzle', name), 'utf8')));
  }

  /** Runs `drizzle-kit generate`; answers what it says. */
  async generate(): Promise<string> {
    return await this.#kit('generate');
  }

  async migrate(): Promise<void> {
    await this.#kit('migrate');
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
    // NODE_OPTIONS may name loaders that are meant for the tests only.
    const { NODE_OPTIONS: _, ...env } = process.env;
    const command = [join(nodeModules, 'drizzle-kit', 'bin.cjs'), ...args, '--config=drizzle.config.json'];
    const { stdout, stderr } = await run(process.execPath, command, {
      cwd: this.directory,
      env,
      // A question would wait for its answer until then.
      timeout: 60_000,
    });
    return stripVTControlCharacters(stdout + stderr);
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}
