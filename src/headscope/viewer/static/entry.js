// Where a person types or pastes a text and chooses a model; only the server can read new ones.

import { h } from "headscope/dom.js";

export class Entry {
  constructor(session) {
    this.session = session;
    this.place = 0;
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
        { method: "dialog", onsubmit: (event) => this.submit(event) },
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

  /** Read what the server was started with or what the address says. */
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
      [this.text.value, this.note.textContent] = [first.text, error.message];
      throw error;
    }
  }

  open(place = 0) {
    this.place = place;
    this.title.textContent = place ? "Read on the right" : "Read a text";
    const now = (this.session.opened[place] ?? this.session.reading)?.request;
    if (now) [this.text.value, this.model.value] = [now.text, now.model];
    this.note.textContent = "";
    this.element.showModal();
    this.text.select();
  }

  async submit(event) {
    event.preventDefault();
    this.go.disabled = true;
    this.note.textContent = "";
    try {
      await this.session.open({ model: this.model.value, text: this.text.value }, this.place);
      this.element.close();
    } catch (error) {
      this.note.textContent = error.message;
    } finally {
      this.go.disabled = false;
    }
  }
}
//# sourceURL=headscope/entry.js
