import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from '../../sql/executor.ts';
import type { Finding } from './finding.ts';

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
  /** Its own. */
  readonly tables: readonly PgTable[];
  /** What is wrong where some of them are not there. */
  missing(absent: readonly PgTable[]): Finding;
  /** What else is wrong; asked where this role may read the workers, and there are any. @default nothing */
  readonly check?: ((question: FeatureQuestion) => Promise<Finding[]>) | undefined;
  /** Where Citus refuses what it sends. @default nothing is wrong there */
  readonly onCitus?: Finding | undefined;
}
