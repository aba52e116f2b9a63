import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Failure } from '../failure.ts';
import { complain } from '../terminal/complain.ts';
import type { Credentials } from './connect.ts';
import { defaultOf, type Exports, loadModule } from './load-module.ts';

/** What a drizzle.config.ts says that this command uses. */
export interface DrizzleConfig {
  readonly credentials: Credentials;
  /** The files with the app's tables. */
  readonly schemaFiles: readonly string[];
}

/**
 * @param root where drizzle-kit is called: it takes the paths of a config from there, not from the config
 * @throws Failure when it is not for PostgreSQL
 */
export async function readDrizzleConfig(path: string, root = dirname(path)): Promise<DrizzleConfig> {
  const config: Exports = Object(defaultOf(await loadModule(path)));
  if (typeof config.dialect === 'string' && config.dialect !== 'postgresql')
    throw new Failure(`${path} is for ${config.dialect}, but drizzle-queue needs PostgreSQL`);
  const schemas = Array.isArray(config.schema) ? config.schema : [config.schema];
  return {
    credentials: credentialsOf(config.dbCredentials),
    schemaFiles: schemas.flatMap((each) =>
      typeof each === 'string' ? filesFrom([root, dirname(path)], each) : [],
    ),
  };
}

function credentialsOf(given: unknown): Credentials {
  if (typeof given !== 'object' || given === null) return undefined;
  const { url, host, port, user, password, database, ssl }: Exports = { ...given };
  if (typeof url === 'string' && url !== '') return url;
  if (typeof host !== 'string') return undefined;
  const parts = { host, port, user, password, database, ssl };
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
}

/** The files that a path means from the first folder from where it means some. */
function filesFrom(folders: readonly string[], given: string): string[] {
  const found = folders.map((folder) => filesOf(folder, given)).find((files) => files.length > 0);
  if (found === undefined && PATTERN.test(given) && globSync() === undefined) {
    complain(
      `The pattern '${given}' in the schema of drizzle.config is not followed: that needs Node.js 22. ` +
        'Name its files or their folder, or update Node.js; tables of other names are not found without',
    );
  }
  return found ?? [];
}

/** From Node.js 22 on. */
function globSync(): ((pattern: string, options: { readonly cwd: string }) => string[]) | undefined {
  const found: unknown = Reflect.get(fs, 'globSync');
  // As Node.js documents it.
  return typeof found === 'function' ? (found as ReturnType<typeof globSync>) : undefined;
}

const PATTERN = /[*?[{]/;

const SOURCE = /(?<!\.d)\.[cm]?[jt]s$/;

/** As drizzle-kit reads it: a file, a folder or a pattern. */
function filesOf(folder: string, given: string): string[] {
  const path = resolve(folder, given);
  if (fs.existsSync(path)) {
    if (!fs.statSync(path).isDirectory()) return [path];
    return fs
      .readdirSync(path)
      .filter((name) => SOURCE.test(name))
      .map((name) => join(path, name));
  }
  const names = globSync()?.(given, { cwd: folder }) ?? [];
  return names.map((name) => resolve(folder, name)).filter((file) => SOURCE.test(file));
}
