import { execFileSync } from 'node:child_process';

/**
 * The files that differ from the branch `main`, or on `main` itself from the commit before; LANDING_BASE names another
 * commit. Undefined if Git cannot tell, as in a clone without a history.
 */
export function changedFiles(root: string): string[] | undefined {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const tryGit = (...args: string[]): string | undefined => {
    try {
      return git(...args);
    } catch {
      return undefined;
    }
  };
  const head = tryGit('rev-parse', 'HEAD');
  const bases = process.env.LANDING_BASE ? [process.env.LANDING_BASE] : ['origin/main', 'main'];
  const forks = bases.map((base) => tryGit('merge-base', base, 'HEAD'));
  const from = forks.find((fork) => fork !== undefined && fork !== head) ?? tryGit('rev-parse', 'HEAD^');
  const changed = from === undefined ? undefined : tryGit('diff', '--name-only', from);
  return changed?.split('\n').filter((path) => path !== '');
}
