import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { type Finding, MIGRATE } from './finding.ts';

/** What a feature is told when it is asked what is wrong. */
export interface FeatureQuestion {
  readonly db: Executor;
  /** Whether a registered worker serves the queue, and has a handler for the kind. */
  readonly isServed: (queue: string, kind: string) => boolean;
  /** Whether this role may read these columns, and they are there. */
  readonly mayAsk: (table: PgTable, asked: readonly PgColumn[]) => boolean;
}

/** A feature, as far as a check looks for its tables. */
export interface FeatureToCheck {
  readonly tables: readonly PgTable[];
  /** What does not work where some of them are not there. */
  readonly without: string;
  /** The entry whose export makes drizzle-kit create them. */
  readonly entry: string;
  /** What else makes them, for an app that gives them other names. @default nothing does */
  readonly factory?: string | undefined;
  /** What else is wrong; asked where this role may read the workers, and there are any. @default nothing */
  readonly check?: ((question: FeatureQuestion) => Promise<Finding[]>) | undefined;
  /** Where Citus refuses what it sends. @default nothing is wrong there */
  readonly onCitus?: Finding | undefined;
}

/** What is wrong where these tables of it are not there. */
export function tablesMissing(
  { without, entry, factory }: FeatureToCheck,
  absent: readonly PgTable[],
): Finding {
  const names = absent.map(quotedName).join(', ');
  return {
    code: 'tables-missing',
    severity: 'error',
    message: `${names} ${absent.length === 1 ? 'does' : 'do'} not exist, so ${without}`,
    fix:
      `${MIGRATE}. If there is nothing to generate, the schema file that drizzle-kit reads must have ` +
      `\`export * from '${entry}'\` at its top level` +
      (factory === undefined ? '' : `, or what ${factory}() returns`),
  };
}
