// Where a person types or pastes a text and chooses a model; only the server can read new ones.

import { h, messageOf, waiting } from "headscope/dom.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Started } from "headscope/types.js" */

export class Entry {
  /** @type {0 | 1} */
  place = 0; // among the readings that are open

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.text = h("textarea", {
      rows: "9",
      "aria-label": "Text to read",
      spellcheck: "false",
      dir: "auto",
      placeholder: "Type or paste a text …",
    });
    this.model = h("select", { "aria-label": "Model" });
    this.note = h("p", { class: "note", role: "alert" });
    this.go = h("button", { type: "submit", class: "main" }, "Read");
    this.title = h("h2");
    this.element = h(
      "dialog",
      { class: "entry", "aria-label": "Read a text" },
      h(
        "form",
        { method: "dialog", onsubmit: (/** @type {Event} */ event) => this.submit(event) },
        this.title,
        this.text,
        this.note,
        h(
          "div",
          { class: "row" },
          h("label", {}, "Model ", this.model),
          h("span", { class: "space" }),
          h("button", { type: "button", onclick: () => this.element.close() }, "Cancel"),
          this.go,
        ),
      ),
    );
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit(event);
    });
  }

  /**
   * Read what the server was started with or what the address says.
   *
   * @param {Started} started
   */
  async start({ models, text }) {
    this.session.firstText = text;
    this.session.firstModel = models[0];
    this.model.replaceChildren(...models.map((name) => h("option", { value: name }, name)));
    const said = this.session.state.values;
    const model = models.includes(said.model) ? said.model : models[0];
    const first = { model, text: said.text || text };
    try {
      await this.session.open(first);
    } catch (error) {
      // Too long, most likely: a person can shorten it where it stands.
      this.open();
      [this.text.value, this.note.textContent] = [first.text, messageOf(error)];
      throw error;
    }
  }

  /** @param {0 | 1} place */
  open(place = 0) {
    this.place = place;
    this.title.textContent = place ? "Read on the right" : "Read a text";
    const now = (this.session.opened[place] ?? this.session.reading)?.request;
    if (now) [this.text.value, this.model.value] = [now.text, now.model];
    this.note.textContent = "";
    this.element.showModal();
    this.text.select();
  }

  /** @param {Event} event */
  async submit(event) {
    event.preventDefault();
    this.go.disabled = true;
    this.note.replaceChildren(waiting("Reading"));
    try {
      await this.session.open({ model: this.model.value, text: this.text.value }, this.place);
      this.note.textContent = "";
      this.element.close();
    } catch (error) {
      this.note.textContent = messageOf(error);
    } finally {
      this.go.disabled = false;
    }
  }
}
//# sourceURL=headscope/entry.js
