import { npmVersion } from 'drizzle-orm/version';

/** Before it a database does not tell its client, so no worker could listen or hold a session. */
const OLDEST = 'drizzle-orm 0.34.1 or newer';
const OLDEST_CANDIDATE = 5;

/** @throws Error when the app's drizzle-orm is too old, which npm refuses and `--force` does not */
export function checkDrizzleVersion(version = npmVersion): void {
  const [, major = '', minor, patch, before] = /^(\d+)\.(\d+)\.(\d+)(?:-(\S*))?/.exec(version) ?? [];
  const isNewEnough =
    major === '0'
      ? Number(minor) > 34 || (minor === '34' && Number(patch) > 0)
      : !version.startsWith('1.0.0-') || isCandidate(before);
  if (isNewEnough) return;
  const oldest = major === '1' ? `drizzle-orm 1.0.0-rc.${OLDEST_CANDIDATE} or newer` : OLDEST;
  throw new Error(`drizzle-queue needs ${oldest}, but found ${version}: npm install drizzle-orm@latest`);
}

/** Nothing is tested with betas, and the candidates before it. */
function isCandidate(prerelease = ''): boolean {
  const [, number] = /^rc\.(\d+)/.exec(prerelease) ?? [];
  return Number(number) >= OLDEST_CANDIDATE;
}
