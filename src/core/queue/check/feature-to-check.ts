import type { PgTable } from 'drizzle-orm/pg-core';
import type { Finding } from './finding.ts';

/** A feature, as far as a check looks for its tables. */
export interface FeatureToCheck {
  /** Its own. */
  readonly tables: readonly PgTable[];
  /** What is wrong where some of them are not there. */
  missing(absent: readonly PgTable[]): Finding;
  /** Where Citus refuses what it sends. @default nothing is wrong there */
  readonly onCitus?: Finding | undefined;
}
