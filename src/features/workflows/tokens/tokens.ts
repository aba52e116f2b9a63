import { MAX_NAME_BYTES, utf8Bytes } from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';
import { QueueError } from '../../../errors.ts';
import { InvalidTokenError } from '../job/invalid-token-error.ts';

/** A secret that tokens are signed with: at least 32 bytes. */
export type TokenSecret = string | Uint8Array;

export interface TokenClaims {
  readonly jobId: number;
  readonly signal: string;
  /** Which token of the job it is: each can be redeemed once. */
  readonly name: string;
  /** Milliseconds since 1970; `undefined`: it does not expire. */
  readonly expiresAt: number | undefined;
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const MIN_SECRET_BYTES = 32;
/** Of the two names, escaped in JSON at worst, and the rest. */
const MAX_TOKEN_CHARACTERS = 2 * MAX_NAME_BYTES * 8 + 200;
/** Signed with the claims, so that a signature of something else that was made with the secret is none. */
const PURPOSE = 'drizzle-queue token 1:';
const HMAC = { name: 'HMAC', hash: 'SHA-256' } as const;

/**
 * Makes and reads tokens: the claims as JSON, a dot, and an HMAC of SHA-256, both in base64url. The first
 * secret signs, and all of them verify. WebCrypto compares signatures in constant time.
 */
export class Tokens {
  readonly #secrets: readonly Uint8Array<ArrayBuffer>[];
  #keys: Promise<readonly Key[]> | undefined;

  /** @throws TypeError | RangeError naming the secret by its place, and never by its value */
  constructor(secrets: readonly TokenSecret[]) {
    if (!Array.isArray(secrets) || secrets.length === 0) {
      throw new TypeError(`workflowsIn: secrets must be an array of at least one, got ${shown(secrets)}`);
    }
    this.#secrets = secrets.map(toSecret);
  }

  async make({ jobId, signal, name, expiresAt }: TokenClaims): Promise<string> {
    const claims = encoded(utf8(JSON.stringify([jobId, signal, name, expiresAt ?? null])));
    const [first] = await this.#imported();
    // The constructor has seen at least one.
    const signature = await crypto.subtle.sign(HMAC.name, first as Key, utf8(`${PURPOSE}${claims}`));
    return `${claims}.${encoded(new Uint8Array(signature))}`;
  }

  /** @throws InvalidTokenError */
  async read(token: unknown): Promise<TokenClaims> {
    if (typeof token !== 'string' || token.length > MAX_TOKEN_CHARACTERS) {
      throw new InvalidTokenError('malformed');
    }
    const [claims = '', text = '', ...rest] = token.split('.');
    const signature = decoded(text);
    const json = decoded(claims);
    if (signature === undefined || json === undefined || rest.length > 0) {
      throw new InvalidTokenError('malformed');
    }
    const signed = utf8(`${PURPOSE}${claims}`);
    for (const key of await this.#imported()) {
      if (await crypto.subtle.verify(HMAC.name, key, signature, signed)) return toClaims(json);
    }
    throw new InvalidTokenError('signature');
  }

  #imported(): Promise<readonly Key[]> {
    this.#keys ??= Promise.all(
      this.#secrets.map((secret) => crypto.subtle.importKey('raw', secret, HMAC, false, ['sign', 'verify'])),
    );
    return this.#keys;
  }
}

/** @throws QueueError where a queue has no secrets */
export function tokensFor(caller: string, tokens: Tokens | undefined): Tokens {
  if (tokens !== undefined) return tokens;
  throw new QueueError(
    `${caller} needs a secret: workflowsIn(tables, { secrets: [process.env.QUEUE_SECRET ?? ''] }), ` +
      `a text of at least ${MIN_SECRET_BYTES} bytes, the same in all processes`,
  );
}

function toSecret(secret: TokenSecret, at: number): Uint8Array<ArrayBuffer> {
  const what = `workflowsIn: secrets[${at}]`;
  if (typeof secret !== 'string' && !(secret instanceof Uint8Array)) {
    throw new TypeError(`${what} must be a text or a Uint8Array, got a value of type ${typeof secret}`);
  }
  const bytes = typeof secret === 'string' ? utf8Bytes(secret) : secret.length;
  if (bytes < MIN_SECRET_BYTES) {
    throw new RangeError(
      `${what} is ${bytes} bytes long; it must have at least ${MIN_SECRET_BYTES}. ` +
        'Make one with `openssl rand -base64 32`',
    );
  }
  // A copy: what the app does with its own changes nothing.
  return typeof secret === 'string' ? utf8(secret) : new Uint8Array(secret);
}

/** What `make` has written: the signature says so. */
function toClaims(json: Uint8Array): TokenClaims {
  const [jobId, signal, name, expiresAt] = JSON.parse(new TextDecoder().decode(json));
  return { jobId, signal, name, expiresAt: expiresAt ?? undefined };
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

function encoded(bytes: Uint8Array): string {
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** `undefined`: it is not base64url, in the one form in which `encoded` writes it. */
function decoded(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]+$/.test(text) || text.length % 4 === 1) return undefined;
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) =>
    character.charCodeAt(0),
  );
  return encoded(bytes) === text ? bytes : undefined;
}
