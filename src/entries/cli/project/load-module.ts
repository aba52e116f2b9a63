import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Failure } from '../failure.ts';
import { allowServerOnly } from './allow-server-only.ts';

export type Exports = Readonly<Record<string, unknown>>;

/** What a program that reads TypeScript may do with a file that Node.js by itself does not load. */
const NEEDS_HELP = new Set([
  'ERR_UNKNOWN_FILE_EXTENSION',
  'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
  'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING',
  'ERR_INVALID_TYPESCRIPT_SYNTAX',
  // `import './db'` without an end, and paths of a tsconfig.
  'ERR_MODULE_NOT_FOUND',
  'ERR_UNSUPPORTED_DIR_IMPORT',
  'MODULE_NOT_FOUND',
  'ERR_PACKAGE_PATH_NOT_EXPORTED',
]);

/**
 * Loads a file of the app, TypeScript or not: by the app's own tsx, or by Node.js, where it strips types, or
 * by the app's jiti. First by tsx: Node.js remembers each file in which it did not find an import, so a
 * second try would find it no more.
 *
 * @throws Failure naming what is missing; what the file itself throws passes unchanged
 */
export async function loadModule(path: string): Promise<Exports> {
  allowServerOnly(path);
  const isTypeScript = /\.[cm]?ts$/.test(path);
  if (isTypeScript) await registerTsx(createRequire(path));
  try {
    return await importFile(path);
  } catch (error) {
    // Type stripping takes an `enum` for a syntax error of JavaScript in some versions.
    const needsHelp = NEEDS_HELP.has(codeOf(error)) || error instanceof SyntaxError;
    if (!isTypeScript || !needsHelp || hasTsx) throw error;
    return await loadWithJiti(path, error);
  }
}

let hasTsx = false;

/** Lets what is loaded from now on be TypeScript, if the app has tsx. Bun needs none. */
async function registerTsx(require: NodeJS.Require): Promise<void> {
  if (hasTsx || process.versions.bun !== undefined) return;
  const esm = resolved(require, 'tsx/esm/api');
  if (esm === undefined || resolved(require, 'tsx/cjs/api') === undefined) return;
  // Both: what is CommonJS in the app stays so.
  const cjs: { register(): unknown } = require('tsx/cjs/api');
  cjs.register();
  // Of its two files the one for ES modules, which a `require` does not resolve to.
  const { register } = await importFile(esm.replace(/\.cjs$/, '.mjs'));
  if (typeof register === 'function') register();
  hasTsx = true;
}

async function loadWithJiti(path: string, first: unknown): Promise<Exports> {
  const jiti = resolved(createRequire(path), 'jiti');
  if (jiti !== undefined) {
    const loaded = await importFile(jiti);
    const create = loaded.createJiti ?? Reflect.get(Object(loaded.default), 'createJiti');
    if (typeof create === 'function') return await create(path).import(path);
  }
  const file = relative(process.cwd(), path) || path;
  if (codeOf(first) === 'ERR_UNKNOWN_FILE_EXTENSION') {
    throw new Failure(
      `${file} is TypeScript, which Node.js ${process.version} does not load by itself: run \`npm i -D tsx\``,
      1,
      { cause: first },
    );
  }
  const why = first instanceof Error ? first.message.split('\n')[0] : String(first);
  throw new Failure(
    `${file} cannot be loaded (${why}). \`npm i -D tsx\` adds what Node.js does not support: ` +
      'imports without a file extension, paths of tsconfig.json, enums',
    1,
    { cause: first },
  );
}

async function importFile(path: string): Promise<Exports> {
  const url = pathToFileURL(path);
  const loaded: Exports = await import(url.href);
  return loaded;
}

/** A package as the app sees it, and not as this one would. */
export async function importFrom(folder: string, name: string): Promise<Exports | undefined> {
  const path = resolved(createRequire(join(folder, 'package.json')), name);
  return path === undefined ? undefined : await importFile(path);
}

function resolved(require: NodeJS.Require, name: string): string | undefined {
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** The default export, also of a file that was compiled to CommonJS. */
export function defaultOf(loaded: Exports): unknown {
  const given = loaded.default;
  const inner: unknown =
    typeof given === 'object' && given !== null ? Reflect.get(given, 'default') : undefined;
  return inner ?? given;
}
