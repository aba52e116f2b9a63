import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { Failure } from '../failure.ts';
import { readDrizzleConfig } from '../project/drizzle-config.ts';
import { findUpwards } from '../project/find-upwards.ts';
import { type ExportedDatabase, findDatabase } from './find-database.ts';
import { configOption, findDrizzleConfig } from './find-drizzle-config.ts';
import { findHome } from './find-home.ts';
import { findSources } from './find-sources.ts';
import { type PackageCommands, packageCommandsOf } from './package-commands.ts';

/** What `init` has found out about an app. */
export interface Survey {
  /** The folder of its package.json. */
  readonly root: string;
  /** Where new files go. */
  readonly sources: string;
  /** The end of the files that are made. */
  readonly end: 'ts' | 'mjs';
  /** What an import of such a file ends with: nothing, `.js` or `.mjs`. */
  readonly importEnd: string;
  /** The files with its tables. */
  readonly schemaFiles: readonly string[];
  /** Where its database is, and under which name; `undefined` where none is exported. */
  readonly database: ExportedDatabase | undefined;
  /** A file that makes a database and exports none, such as a provider of NestJS. */
  readonly hiddenDatabase: string | undefined;
  /** Whether the database is one that NestJS injects: then so are what the handlers and the worker need. */
  readonly isInjected: boolean;
  /** A tsconfig that excludes drizzle.config.ts by name, and must exclude queue.config.ts as well. */
  readonly buildConfig: string | undefined;
  readonly driver: 'postgres' | 'pg' | undefined;
  /** The variable from which drizzle.config.ts takes the database's address. */
  readonly urlVariable: string;
  /** Whether it is set, perhaps by a file that is read by itself, or the config names none. */
  readonly hasUrl: boolean;
  /** Whether `drizzle` takes a client alone; 1.0 wants it in an object, and 0.34 does not know the object. */
  readonly takesClient: boolean;
  readonly commands: PackageCommands;
  /** What drizzle-kit must be told to find its config. */
  readonly configOption: string;
  readonly hasZod: boolean;
  readonly hasQueue: boolean;
  readonly hasTsx: boolean;
  /** Whether modules may import `server-only`, which throws without a condition of its own. */
  readonly hasNext: boolean;
}

/** Looks at an app, and changes nothing. @throws Failure where it is not an app with Drizzle */
export async function surveyApp(cwd: string, configFile?: string): Promise<Survey> {
  const manifest = findUpwards(['package.json'], cwd);
  if (manifest === undefined) throw new Failure('There is no package.json here: begin with `npm init`');
  const root = dirname(manifest);
  const config = findDrizzleConfig(cwd, root, configFile);
  const { schemaFiles } = await readDrizzleConfig(config, root);
  const named = urlVariableOf(readFileSync(config, 'utf8'));
  const urlVariable = named ?? 'DATABASE_URL';
  if (schemaFiles.length === 0)
    throw new Failure(`${relative(cwd, config)} names no schema file that exists: write one first`);
  const { dependencies, devDependencies }: { dependencies?: object; devDependencies?: object } = JSON.parse(
    readFileSync(manifest, 'utf8'),
  );
  const packages = new Set(Object.keys({ ...dependencies, ...devDependencies }));
  const { home, base } = findSources(root, schemaFiles, packages);
  const found = findDatabase(basename(base) === 'src' ? [home, base] : [home, base, root]);
  const isInjected =
    found.database === undefined && found.hidden !== undefined && packages.has('@nestjs/core');
  const isTypeScript = /\.[cm]?ts$/.test(config);
  return {
    root,
    sources: isInjected ? join(home, 'queue') : findHome(home),
    end: isTypeScript ? 'ts' : 'mjs',
    importEnd: isTypeScript ? importEndOf(root) : '.mjs',
    schemaFiles,
    database: found.database,
    hiddenDatabase: found.hidden,
    isInjected,
    buildConfig: buildConfigOf(root),
    driver: packages.has('postgres') ? 'postgres' : packages.has('pg') ? 'pg' : undefined,
    urlVariable,
    hasUrl: named === undefined || (process.env[named] ?? '') !== '',
    takesClient: drizzleVersion(root, { ...dependencies, ...devDependencies }).startsWith('0.'),
    commands: packageCommandsOf(root),
    configOption: configOption(root, config),
    hasZod: packages.has('zod'),
    hasQueue: packages.has('drizzle-queue'),
    hasTsx: packages.has('tsx'),
    hasNext: packages.has('next'),
  };
}

/** The first variable behind `url`, or else the first whose name speaks of one. */
function urlVariableOf(config: string): string | undefined {
  const names = [...config.matchAll(/\benv(?:\.|\[['"])(\w+)/g)].map(([, name = '']) => name);
  const ofUrl = /\burl\s*:[^,}]*?\benv(?:\.|\[['"])(\w+)/.exec(config)?.[1];
  return ofUrl ?? names.find((name) => /URL|URI|DSN|CONNECTION/i.test(name));
}

/** The version that is installed, or the range that package.json names. */
function drizzleVersion(root: string, ranges: Readonly<Record<string, unknown>>): string {
  try {
    const { version }: { version: string } = createRequire(join(root, 'package.json'))(
      'drizzle-orm/package.json',
    );
    return version;
  } catch {
    return String(ranges['drizzle-orm'] ?? '0.').replace(/^[^\d]+/, '');
  }
}

/** Node.js's own resolution wants the name of the file that is run; bundlers and tsx do without an end. */
function importEndOf(root: string): string {
  const file = join(root, 'tsconfig.json');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (/"allowImportingTsExtensions"\s*:\s*true/.test(text)) return '.ts';
  return /"module(Resolution)?"\s*:\s*"node(16|18|20|next)"/i.test(text) ? '.js' : '';
}

/** A build without `rootDir` puts its output elsewhere as soon as a file above `src` is part of it. */
function buildConfigOf(root: string): string | undefined {
  return ['tsconfig.build.json', 'tsconfig.json'].find((name) => {
    const file = join(root, name);
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return text.includes('"drizzle.config.ts"') && !text.includes('"queue.config.ts"');
  });
}
