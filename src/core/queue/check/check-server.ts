import type { ServerState } from '../../queries/operate/inspect-server.ts';
import { OLDEST_SUPPORTED } from '../../queries/presence/check-database.ts';
import type { Finding } from './finding.ts';

/** Servers that speak the protocol, and on which the statements fail or promise less. */
const STRANGERS = [
  { name: 'CockroachDB', lacks: 'refuses statements that change a table twice, so jobs cannot be ended' },
  { name: 'Yugabyte', lacks: 'was never tried, and claims there cost a message for each job they look at' },
  { name: 'Redshift', lacks: 'has no row locks, so no job can be claimed' },
] as const;

/** What the server is, and what it lacks. */
export function checkServer(server: ServerState): Finding[] {
  const { versionNumber, version, product, readOnly, standby, autovacuum } = server;
  const findings: Finding[] = [];
  const stranger = STRANGERS.find(({ name }) => product.includes(name));
  if (stranger !== undefined) {
    findings.push({
      code: 'not-postgres',
      severity: 'error',
      message: `This server is ${stranger.name}, which ${stranger.lacks}`,
      fix: 'Keep the queue in PostgreSQL: the guide "Scaling" says which servers were tried',
    });
  }
  if (versionNumber < OLDEST_SUPPORTED) {
    findings.push({
      code: 'postgres-too-old',
      severity: 'error',
      message: `drizzle-queue needs PostgreSQL 14 or newer; this server is ${version}`,
      fix: 'Upgrade the server',
    });
  }
  if (readOnly) {
    findings.push({
      code: 'read-only',
      severity: 'error',
      message: standby
        ? 'This connection may only read: the server is a standby, or the reader of a cluster'
        : 'This connection may only read: default_transaction_read_only is on for it',
      fix: standby
        ? 'Connect to the primary, or to the endpoint of the cluster that writes'
        : 'Turn it off for this role or database: alter role … set default_transaction_read_only = off',
    });
  }
  if (!autovacuum) {
    findings.push({
      code: 'autovacuum-off',
      severity: 'warning',
      message: 'Autovacuum is off on this server: finished jobs leave dead rows, and nothing removes them',
      fix: 'alter system set autovacuum = on, and select pg_reload_conf()',
    });
  }
  return findings;
}
