/** A client of an OpenAI-compatible API, at `LLM_URL` with the key `LLM_KEY`. */
import { NonRetryableError } from 'drizzle-queue';
import { z } from 'zod';

const answerSchema = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string() }) })).min(1),
});

/** What the same request would be answered again. */
const REFUSALS = new Set([400, 413, 422]);

/** The provider wants fewer requests. */
export class RateLimitedError extends Error {
  override name = 'RateLimitedError';
  constructor(readonly retryAfterMs: number) {
    super(`Rate limited for ${retryAfterMs} ms`);
  }
}

/**
 * A title for what somebody has written.
 *
 * @throws RateLimitedError on 429
 * @throws NonRetryableError when the provider refuses this very request
 */
export async function suggestTitle(text: string, user: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(`${process.env.LLM_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.LLM_KEY}` },
    body: JSON.stringify({
      model: process.env.LLM_MODEL ?? 'gpt-4.1-mini',
      user,
      max_tokens: 20,
      messages: [
        { role: 'system', content: 'Answer with a title of at most six words for what the user writes.' },
        // The beginning says what it is about, and a long text costs.
        { role: 'user', content: text.slice(0, 2_000) },
      ],
    }),
    signal,
  });
  if (response.status === 429) throw new RateLimitedError(retryAfterMs(response.headers.get('retry-after')));
  if (!response.ok) {
    const message = `The model answered ${response.status}: ${(await response.text()).slice(0, 200)}`;
    // Anything else may pass: a key that is wrong today is right tomorrow.
    if (REFUSALS.has(response.status)) throw new NonRetryableError(message);
    throw new Error(message);
  }
  const { choices } = answerSchema.parse(await response.json());
  const title = (choices[0]?.message.content ?? '').replaceAll('"', '').trim().slice(0, 80);
  // It happens, and another attempt may do better.
  if (title === '') throw new Error('The model answered with nothing');
  return title;
}

/** `Retry-After` holds seconds or a date; a second where it holds neither or says less, and an hour at most. */
function retryAfterMs(header: string | null): number {
  const ms = /^\d+$/.test(header ?? '') ? Number(header) * 1_000 : Date.parse(header ?? '') - Date.now();
  return Number.isNaN(ms) ? 1_000 : Math.min(Math.max(ms, 1_000), 3_600_000);
}
