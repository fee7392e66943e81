import { start } from "headscope/main.js";

const root = document.getElementById("headscope");
if (root) start(root);
//# sourceURL=headscope/boot.js
