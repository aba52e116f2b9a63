import { execFileSync } from 'node:child_process';

/** Builds the site as its workflow does; whatever is wrong with a page or a docstring ends the run here. */
export default function setup(): void {
  execFileSync('npm', ['run', '--silent', 'site'], { stdio: 'inherit' });
  execFileSync('node_modules/.bin/tsc', ['-p', 'site'], { stdio: 'inherit' });
}
