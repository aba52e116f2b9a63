import { npmVersion } from 'drizzle-orm/version';

/** Before it a database does not tell its client, so no worker could listen or hold a session. */
const OLDEST_MINOR = 34;

/** @throws Error when the app's drizzle-orm is too old, which npm refuses and `--force` does not */
export function checkDrizzleVersion(version = npmVersion): void {
  const [, major, minor] = /^(\d+)\.(\d+)\./.exec(version) ?? [];
  if (Number(major) > 0 || Number(minor) >= OLDEST_MINOR) return;
  throw new Error(
    `drizzle-queue needs drizzle-orm 0.${OLDEST_MINOR}.1 or newer, and here it is ${version}: ` +
      'npm install drizzle-orm@latest',
  );
}
