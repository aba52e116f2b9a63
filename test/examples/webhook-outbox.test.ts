import { describe, expect, test } from 'vitest';
import { retryAfterMs } from '../../examples/webhook-outbox/delivery-error.ts';
import { isSigned, newSecret, signedHeaders } from '../../examples/webhook-outbox/signature.ts';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'each event is delivered, and done once, whatever becomes of the receiver',
  async () => {
    const { code, stdout, output } = await runExample('webhook-outbox');
    expect(code, output).toBe(0);
    expect(stdout).toContain('✓ Forged and outdated requests refused: 401, 401\n');
    expect(stdout).toContain('✓ Orders placed: 32\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(
      /\nEach event that is not refused was delivered at least once, and done once\.\n$/,
    );
  },
  180_000,
);

describe('a signature', () => {
  const body = '{"test": 2432232314}';
  const at = new Date(1_614_265_330_000);

  test('is that of Standard Webhooks, whose libraries test themselves with this one', () => {
    const headers = signedHeaders(
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      body,
      at,
    );
    expect(headers).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  test('holds for this body, this id and this time, for five minutes', () => {
    const secret = newSecret();
    const headers = signedHeaders([newSecret(), secret], 'msg_1', body, at);
    const later = (seconds: number) => new Date(at.getTime() + seconds * 1_000);
    expect(isSigned(secret, headers, body, later(300))).toBe(true);
    expect(isSigned(secret, headers, body, later(301))).toBe(false);
    expect(isSigned(secret, headers, body, later(-301))).toBe(false);
    expect(isSigned(secret, headers, `${body} `, at)).toBe(false);
    expect(isSigned(newSecret(), headers, body, at)).toBe(false);
    expect(isSigned(secret, { ...headers, 'webhook-id': 'msg_2' }, body, at)).toBe(false);
    expect(isSigned(secret, { ...headers, 'webhook-timestamp': '1614265331' }, body, at)).toBe(false);
    expect(isSigned(secret, { ...headers, 'webhook-timestamp': 'now' }, body, at)).toBe(false);
    expect(isSigned(secret, { ...headers, 'webhook-signature': 'v1,' }, body, at)).toBe(false);
    expect(isSigned(secret, {}, body, at)).toBe(false);
  });
});

test.each([
  [null, 0],
  ['2', 2_000],
  ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000 - 1_500],
  ['Wed, 31 Dec 1969 00:00:00 GMT', 0],
  ['soon', 0],
  // An endpoint cannot put an event off for longer.
  ['999999999', 3_600_000],
])('Retry-After: %s', (header, ms) => {
  expect(retryAfterMs(header, 1_500)).toBe(ms);
});
