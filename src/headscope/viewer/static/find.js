// Finding a token: the field in the bar. Enter goes from one to the next.

import { h } from "headscope/dom.js";

/** @import { Session } from "headscope/session.js" */

export class Find {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.field = h("input", {
      type: "search",
      placeholder: "Find  /",
      "aria-label": "Find a token",
      autocomplete: "off",
      dir: "auto",
    });
    this.count = h("span", { class: "count", role: "status" });
    this.element = h("span", { class: "find" }, this.field, this.count);
    this.field.addEventListener("input", () => this.next(0));
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.field.blur();
    });
  }

  matches() {
    const wanted = this.field.value.trim().toLocaleLowerCase();
    const { tokens } = this.session.current;
    const left = this.session.state.values.special === "left_out";
    if (!wanted) return [];
    return tokens.word.flatMap((word, p) =>
      word.toLocaleLowerCase().includes(wanted) && !(left && tokens.special[p]) ? [p] : [],
    );
  }

  /** @param {number} step */
  next(step) {
    const found = this.matches();
    if (!found.length) {
      this.count.textContent = this.field.value ? "none" : "";
      return;
    }
    const now = found.indexOf(this.session.state.token ?? -1);
    const at = now < 0 ? 0 : (now + step + found.length) % found.length;
    this.count.textContent = `${at + 1} of ${found.length}`;
    this.session.state.set({ token: found[at] });
  }
}
//# sourceURL=headscope/find.js
