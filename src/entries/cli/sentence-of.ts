import { causesOf } from '../../internal.ts';
import { Failure } from './failure.ts';

/** What the codes of drivers, sockets and PostgreSQL mean, in words for a user at a terminal. */
const MEANINGS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the database does not answer: is it running, and is the address right?',
  ECONNRESET: 'the database closed the connection',
  EPIPE: 'the database closed the connection',
  ENOTFOUND: 'the host does not exist',
  EAI_AGAIN: 'the host name could not be resolved',
  ETIMEDOUT: 'the database did not answer in time',
  CONNECT_TIMEOUT: 'the database did not answer in time',
  CONNECTION_CLOSED: 'the database closed the connection',
  CONNECTION_ENDED: 'the connection to the database was closed',
  '25006': 'the database is read-only: connect to the primary, or turn default_transaction_read_only off',
  '28P01': 'the database rejected the password',
  '28000': 'the database rejected this user',
  '3D000': 'the database does not exist',
  '42501': 'this role lacks a privilege (`drizzle-queue sql grants` prints what each role needs)',
  '53300': 'the database has no free connection',
  '57014': 'the database cancelled the statement',
  '57P01': 'the database is shutting down',
  '57P03': 'the database is starting up',
};

/** One sentence about any error: never a stack, and never the parameters of a statement. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Failure) return error.message;
  const chain = chainOf(error);
  // Our own sentences name the command to run; what drivers say of the same stands below them.
  const own = chain.find((each) => /^(MissingMigration|Queue|Invalid|Unknown)\w*Error$/.test(each.name));
  const deepest = chain.at(-1);
  const code = codeOf(chain);
  const meaning = code === undefined ? undefined : MEANINGS[code];
  const said = deepest?.message || code || String(error);
  if (own !== undefined && (meaning === undefined || own.name === 'MissingMigrationError'))
    return own.message;
  return meaning === undefined ? said : `${capital(meaning)} (${said})`;
}

/** Node.js tries every address of a host, and says all that went wrong: the first is told. */
function chainOf(error: unknown): readonly Error[] {
  const chain = causesOf(error);
  const last = chain.at(-1);
  return last instanceof AggregateError ? [...chain, ...causesOf(last.errors[0])] : chain;
}

function codeOf(chain: readonly Error[]): string | undefined {
  for (const each of [...chain].reverse()) {
    const code: unknown = Reflect.get(each, 'code');
    if (typeof code === 'string') return code;
  }
  return undefined;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
