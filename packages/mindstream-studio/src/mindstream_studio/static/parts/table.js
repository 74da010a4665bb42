/** A table; on a narrow screen each row is a block, and each cell shows its column's title. */
import { html } from "../html.js";

/**
 * @template T
 * @typedef {{title: string, of: (row: T) => any, numeric?: boolean}} Column
 */

/** @template T @param {{caption: string, columns: Column<T>[], rows: T[]}} props */
export function Table({ caption, columns, rows }) {
  return html`
    <table class="folds">
      <caption class="hidden-words">${caption}</caption>
      <thead><tr>${columns.map(({ title, numeric }) => html`<th scope="col" class=${numeric ? "numeric" : ""}>${title}</th>`)}</tr></thead>
      <tbody>
        ${rows.map((row) => html`
          <tr>${columns.map(({ title, of, numeric }) => html`
            <td class=${numeric ? "numeric" : ""} data-label=${title}>${of(row)}</td>`)}</tr>`)}
      </tbody>
    </table>`;
}
