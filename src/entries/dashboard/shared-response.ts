const read = new WeakMap<Response, Promise<ArrayBuffer>>();

/**
 * A copy of a response of the app. An app may return the same object for each stranger, and a body can be
 * read once only: it is read here, and each copy has it whole.
 *
 * @throws TypeError when the app has read the body itself
 */
export async function copyOf(response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  if (response.body === null) return new Response(null, { status, statusText, headers });
  const body = read.get(response) ?? response.arrayBuffer();
  read.set(response, body);
  return new Response(await body, { status, statusText, headers });
}
