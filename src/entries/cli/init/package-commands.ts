import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** How a package manager adds packages, and runs their commands. */
export interface PackageCommands {
  readonly add: string;
  readonly run: string;
}

const MANAGERS = {
  npm: { add: 'npm install', run: 'npx' },
  pnpm: { add: 'pnpm add', run: 'pnpm exec' },
  yarn: { add: 'yarn add', run: 'yarn' },
  bun: { add: 'bun add', run: 'bunx' },
} satisfies Record<string, PackageCommands>;

const LOCK_FILES: Readonly<Record<string, keyof typeof MANAGERS>> = {
  'pnpm-lock.yaml': 'pnpm',
  'yarn.lock': 'yarn',
  'bun.lock': 'bun',
  'bun.lockb': 'bun',
  'package-lock.json': 'npm',
};

/** The package manager of a project, by `packageManager` or the lock file, here or in a workspace above. */
export function packageCommandsOf(root: string): PackageCommands {
  for (let folder = root; ; folder = dirname(folder)) {
    const found = declaredIn(folder) ?? lockedIn(folder);
    if (found !== undefined) return MANAGERS[found];
    if (dirname(folder) === folder) return MANAGERS.npm;
  }
}

function declaredIn(folder: string): keyof typeof MANAGERS | undefined {
  const file = join(folder, 'package.json');
  if (!existsSync(file)) return undefined;
  const name = /"packageManager"\s*:\s*"(npm|pnpm|yarn|bun)@/.exec(readFileSync(file, 'utf8'))?.[1];
  return name === 'npm' || name === 'pnpm' || name === 'yarn' || name === 'bun' ? name : undefined;
}

function lockedIn(folder: string): keyof typeof MANAGERS | undefined {
  return Object.entries(LOCK_FILES).find(([name]) => existsSync(join(folder, name)))?.[1];
}
