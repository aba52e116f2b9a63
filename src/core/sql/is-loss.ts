import { sqlStateOf } from './executor.ts';

/** Whether an error says that the connection is gone, rather than that a statement was refused. */
export function isLoss(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  return sqlState === undefined || /^(08|57P|25P03)/.test(sqlState);
}

/** Whether the server, or its host, has answered: with an error of its own, or by closing the connection. */
export function isRefusal(error: unknown): boolean {
  if (/^[0-9]/.test(sqlStateOf(error) ?? '')) return true;
  for (let at = error; at instanceof Error; at = at.cause) {
    if (/^ECONN(REFUSED|RESET)$/.test(String(Reflect.get(at, 'code')))) return true;
  }
  return false;
}
