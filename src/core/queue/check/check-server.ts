import type { ServerState } from '../../queries/operate/inspect-server.ts';
import { OLDEST_SUPPORTED } from '../../queries/presence/check-database.ts';
import type { Finding } from './finding.ts';

/** Servers that speak the protocol, and on which the statements fail or promise less. */
const STRANGERS = [
  { name: 'CockroachDB', lacks: 'refuses statements that change a table twice, so jobs cannot end' },
  { name: 'Yugabyte', lacks: 'is untested, and a claim there costs a message for each job it looks at' },
  { name: 'Redshift', lacks: 'has no row locks, so no job can be claimed' },
] as const;

export function checkServer(server: ServerState): Finding[] {
  const { versionNumber, version, product, readOnly, standby, autovacuum } = server;
  const findings: Finding[] = [];
  const stranger = STRANGERS.find(({ name }) => product.includes(name));
  if (stranger !== undefined) {
    findings.push({
      code: 'not-postgres',
      severity: 'error',
      message: `This server is ${stranger.name}, which ${stranger.lacks}`,
      fix: 'Keep the queue in PostgreSQL: the guide "Scaling" lists the tested servers',
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
        ? 'This connection is read-only: the server is a standby, or the reader of a cluster'
        : 'This connection is read-only: default_transaction_read_only is on',
      fix: standby
        ? 'Connect to the primary, or to the writer endpoint of the cluster'
        : 'Turn it off for this role or database: alter role … set default_transaction_read_only = off',
    });
  }
  if (!autovacuum) {
    findings.push({
      code: 'autovacuum-off',
      severity: 'warning',
      message: 'Autovacuum is off on this server: finished jobs leave dead rows that are never removed',
      fix: 'alter system set autovacuum = on, and select pg_reload_conf()',
    });
  }
  return findings;
}
