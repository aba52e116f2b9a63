import { h } from '../html.ts';
/** A column's title: above text, above numbers, or only for those who hear the page. */
export type Column = string | { readonly number: string } | { readonly unseen: string };

export function TableHead({ columns }: { readonly columns: readonly Column[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) =>
          typeof column === 'string' ? (
            <th scope="col">{column}</th>
          ) : 'number' in column ? (
            <th scope="col" class="number">
              {column.number}
            </th>
          ) : (
            <th scope="col">
              <span class="unseen">{column.unseen}</span>
            </th>
          ),
        )}
      </tr>
    </thead>
  );
}
