import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Failure } from '../failure.ts';
import { readDrizzleConfig } from '../project/drizzle-config.ts';
import { findConfig, findUpwards } from '../project/find-upwards.ts';

/** What `init` has found out about an app. */
export interface Survey {
  /** The folder of its package.json. */
  readonly root: string;
  /** Where its sources are: `src`, or the root. */
  readonly sources: string;
  /** The end of the files that are made. */
  readonly end: 'ts' | 'mjs';
  /** What an import of such a file ends with: nothing, `.js` or `.mjs`. */
  readonly importEnd: string;
  /** The files with its tables. */
  readonly schemaFiles: readonly string[];
  /** Where its database is, and under which name; `undefined` where none was found. */
  readonly database: { readonly file: string; readonly name: string } | undefined;
  readonly driver: 'postgres' | 'pg' | undefined;
  readonly hasZod: boolean;
  readonly hasQueue: boolean;
}

/** Looks at an app, and changes nothing. @throws Failure where it is no app with Drizzle */
export async function surveyApp(cwd: string): Promise<Survey> {
  const manifest = findUpwards(['package.json'], cwd);
  if (manifest === undefined) throw new Failure('There is no package.json here: begin with `npm init`');
  const root = dirname(manifest);
  const config = findConfig('drizzle', cwd);
  if (config === undefined) {
    throw new Failure(
      'There is no drizzle.config.ts here: set up Drizzle and drizzle-kit first ' +
        '(https://orm.drizzle.team), and run this again',
    );
  }
  const { schemaFiles } = await readDrizzleConfig(config);
  if (schemaFiles.length === 0)
    throw new Failure(`${relative(cwd, config)} names no schema file that exists: write one first`);
  const { dependencies, devDependencies }: { dependencies?: object; devDependencies?: object } = JSON.parse(
    readFileSync(manifest, 'utf8'),
  );
  const packages = new Set(Object.keys({ ...dependencies, ...devDependencies }));
  const sources = existsSync(join(root, 'src')) ? join(root, 'src') : root;
  const isTypeScript = /\.[cm]?ts$/.test(config);
  return {
    root,
    sources,
    end: isTypeScript ? 'ts' : 'mjs',
    importEnd: isTypeScript ? importEndOf(root) : '.mjs',
    schemaFiles,
    database: findDatabase(sources),
    driver: packages.has('postgres') ? 'postgres' : packages.has('pg') ? 'pg' : undefined,
    hasZod: packages.has('zod'),
    hasQueue: packages.has('drizzle-queue'),
  };
}

/** Node.js's own resolution wants the name of the file that is run; bundlers and tsx do without an end. */
function importEndOf(root: string): string {
  const file = join(root, 'tsconfig.json');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (/"allowImportingTsExtensions"\s*:\s*true/.test(text)) return '.ts';
  return /"module(Resolution)?"\s*:\s*"node(16|18|20|next)"/i.test(text) ? '.js' : '';
}

const MOST_FILES = 2_000;
const PASSED_OVER = /^(node_modules|dist|build|out|coverage|\..*)$/;
const DATABASE = /^export\s+const\s+(\w+)[^=\n]*=\s*drizzle\s*[(<]/m;

/** The first file that exports what `drizzle(…)` returns. */
function findDatabase(sources: string): Survey['database'] {
  const folders = [sources];
  let looked = 0;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!PASSED_OVER.test(entry.name)) folders.push(path);
        continue;
      }
      if (!/(?<!\.d)\.[cm]?[jt]s$/.test(entry.name)) continue;
      if (looked++ > MOST_FILES) return undefined;
      const name = DATABASE.exec(readFileSync(path, 'utf8'))?.[1];
      if (name !== undefined) return { file: path, name };
    }
  }
  return undefined;
}
