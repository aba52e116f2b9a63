import { causesOf } from './causes-of.ts';
import { sqlStateOf } from './executor.ts';

/** Whether an error says that the connection is gone, rather than that a statement was refused. */
export function isLoss(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  if (sqlState === undefined || /^(08|57P|25P03)/.test(sqlState)) return true;
  return endsSession(error) && !ENTRY_DENIED.test(sqlState);
}

/** No connection is made, however often it is tried: a wrong password, no such database, no right to it. */
const ENTRY_DENIED = /^(28|3D|42)/;

/**
 * Whether the server, or a pooler in front of it, has closed the connection with this error. No row is a
 * reason for that, whatever the SQLSTATE: Supavisor gives XX000 each time.
 */
export function endsSession(error: unknown): boolean {
  for (const at of causesOf(error)) {
    // postgres.js reads `severity` from the field V, which Supavisor does not send.
    const severity = Reflect.get(at, 'severity') ?? Reflect.get(at, 'severity_local');
    if (severity === 'FATAL' || severity === 'PANIC') return true;
  }
  return false;
}

/** Whether the server, or its host, has answered: with an error of its own, or by closing the connection. */
export function isRefusal(error: unknown): boolean {
  if (sqlStateOf(error) !== undefined) return true;
  for (const at of causesOf(error)) {
    if (/^(ECONN(REFUSED|RESET)|EPIPE)$/.test(String(Reflect.get(at, 'code')))) return true;
  }
  return false;
}
