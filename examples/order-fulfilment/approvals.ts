/** The part of the web app to which the clerk's links lead. It is called with a request, and runs no jobs. */
import { InvalidTokenError, type RedeemResult } from 'drizzle-queue';
import type { Database } from './database.ts';
import { approval, queue } from './jobs.ts';

export function linkWith(token: string): string {
  return `https://shop.test/approve?token=${token}`;
}

const ANSWERS: Record<RedeemResult, { readonly status: number; readonly text: string }> = {
  sent: { status: 200, text: 'Thank you' },
  duplicate: { status: 200, text: 'You have decided before' },
  expired: { status: 410, text: 'This link has expired' },
  gone: { status: 410, text: 'This order is no longer open' },
};

/**
 * Answers when a button of the page is pressed. To open the page decides nothing, because mail scanners open links,
 * too. An app would take the name from the clerk's session.
 */
export async function approve(db: Database, request: Request): Promise<Response> {
  const token = new URL(request.url).searchParams.get('token');
  const form = await request.formData();
  const decision = { by: String(form.get('by')), ok: form.get('decision') === 'ship' };
  try {
    const { status, text } = ANSWERS[await queue.workflows.redeem(db, approval, token, decision)];
    return new Response(text, { status });
  } catch (error) {
    if (error instanceof InvalidTokenError) return new Response('This link is not valid', { status: 400 });
    throw error;
  }
}
