/** The ids of a query's rows, ascending: `returning` answers in no order. */
export async function ids(query: PromiseLike<readonly { id: number }[]>): Promise<number[]> {
  return (await query).map(({ id }) => id).sort((a, b) => a - b);
}
