import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { Failure } from '../failure.ts';
import { findConfig } from '../project/find-upwards.ts';

const NAME = /^drizzle(?:[.-][\w-]+)*\.config\.[cm]?[jt]s$/;
const PASSED_OVER = /^(node_modules|dist|build|out|coverage|\..*)$/;
/** How many folders below are searched: `packages/db` and `src/server/db` have their config there. */
const DEEPEST = 3;

/**
 * The drizzle config of an app: the one that is named, the nearest from here up to its package.json, the one
 * that a script there names, the only one below, or one of the workspace above.
 *
 * @throws Failure where there is none, or more than one
 */
export function findDrizzleConfig(cwd: string, root: string, named: string | undefined): string {
  if (named !== undefined) {
    const path = resolve(cwd, named);
    if (existsSync(path)) return path;
    throw new Failure(`The file ${named} of --drizzle-config does not exist`, 2);
  }
  const above = findConfig('drizzle', cwd);
  const isOwn = above?.startsWith(join(realpathSync(root), sep)) ?? false;
  const found = isOwn ? above : inScripts(root);
  if (found !== undefined) return found;
  const [only = above, ...others] = below(root, DEEPEST);
  if (only === undefined) {
    throw new Failure(
      'There is no drizzle.config.ts here: set up Drizzle and drizzle-kit first ' +
        '(https://orm.drizzle.team), and run this again; or name it with --drizzle-config',
    );
  }
  if (others.length === 0) return only;
  const names = [only, ...others].map((path) => relative(cwd, path)).join(', ');
  throw new Failure(`There is more than one drizzle config: name one with --drizzle-config (${names})`);
}

function inScripts(root: string): string | undefined {
  const { scripts = {} }: { scripts?: Record<string, string> } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const names = Object.values(scripts).map(
    (script) => /drizzle-kit\b.*?--config[= ]["']?([^\s"']+)/.exec(script)?.[1],
  );
  const paths = names.flatMap((name) => (name === undefined ? [] : [join(root, name)]));
  return paths.find((path) => existsSync(path));
}

function below(folder: string, depth: number): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && NAME.test(entry.name));
  const folders = entries.filter((entry) => entry.isDirectory() && !PASSED_OVER.test(entry.name));
  return [
    ...files.map(({ name }) => join(folder, name)),
    ...(depth === 0 ? [] : folders.flatMap(({ name }) => below(join(folder, name), depth - 1))),
  ];
}

/** What drizzle-kit needs for a config that it does not find by itself; '' where it does. */
export function configOption(root: string, config: string): string {
  const usual = dirname(config) === root && /[\\/]drizzle\.config\.[jt]s$/.test(config);
  return usual ? '' : ` --config=${relative(root, config).replaceAll('\\', '/')}`;
}
