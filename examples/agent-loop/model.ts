/** A client of a language model over HTTP, like those that its provider offers. */

/** What the model wants: to use a tool, or to end. */
export type Wish =
  | { readonly tool: 'look up order' }
  | { readonly tool: 'refund'; readonly cents: number }
  | { readonly tool: 'write letter'; readonly body: string }
  | { readonly answer: string };

export interface Turn {
  readonly wish: Wish;
  readonly costCents: number;
}

export interface Message {
  readonly from: 'customer' | 'model' | 'tool';
  readonly text: string;
}

/** Asks for the next turn. A provider that knows idempotency keys bills a repeated key once. */
export async function nextTurn(
  messages: readonly Message[],
  idempotencyKey: string,
  signal: AbortSignal,
): Promise<Turn> {
  const response = await fetch(process.env.MODEL_URL ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(messages),
    signal,
  });
  if (!response.ok) throw new Error(`The model answers ${response.status}`);
  return (await response.json()) as Turn;
}
