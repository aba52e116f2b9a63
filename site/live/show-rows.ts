/** Rows as they are shown: text by the name of its column. */
export interface ShownRows {
  readonly count: number;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Shows rows in a table, and touches it only where they have changed: a reader may be in it. */
export function showRows(table: HTMLTableElement, name: string, { count, columns, rows }: ShownRows): void {
  const caption = table.caption ?? table.createCaption();
  const more = count > rows.length ? `, the newest ${rows.length} of them` : '';
  fill(caption, `${name}: ${count} ${count === 1 ? 'row' : 'rows'}${more}`);
  if (table.tHead === null) {
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const cell = table.ownerDocument.createElement('th');
      cell.scope = 'col';
      head.append(fill(cell, column));
    }
  }
  const body = table.tBodies[0] ?? table.createTBody();
  while (body.rows.length > rows.length) body.deleteRow(-1);
  for (const [index, values] of rows.entries()) {
    const row = body.rows[index] ?? body.insertRow();
    for (const [at, value] of values.entries()) fill(row.cells[at] ?? row.insertCell(), value);
  }
}

/** Gives an element its text, unless it has it. */
export function fill<T extends HTMLElement>(element: T, text: string): T {
  if (element.textContent !== text) element.textContent = text;
  return element;
}
