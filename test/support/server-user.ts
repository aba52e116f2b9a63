import { execFileSync } from 'node:child_process';

/** The operating system account which the server's processes run under. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** Accounts which a process of root may hand the server to, best first. */
const unprivilegedAccounts = ['postgres', 'nobody'];

/**
 * The account to start PostgreSQL under, or undefined for the one this process already has.
 *
 * PostgreSQL refuses to run as root, which is who tests run as in most containers.
 */
export function serverUser(): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const account of unprivilegedAccounts) {
    const uid = accountId('-u', account);
    const gid = accountId('-g', account);
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new Error(
    `PostgreSQL does not run as root, and this system has none of the accounts ${unprivilegedAccounts.join(', ')}. ` +
      'Run the tests as another user, or set DATABASE_URL.',
  );
}

/** Asks `id`, because Node.js itself looks up no account but the current one. */
function accountId(flag: '-u' | '-g', account: string): number | undefined {
  try {
    return Number(
      execFileSync('id', [flag, account], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return undefined;
  }
}
