"""What an attacker, an accident or a stranger's file may do, and what headscope answers.

Each file holds a table of (what is attacked, the attack, the answer expected). The answer is a
sentence that says what is wrong, or the very same result as without the attack; never a traceback,
never another number, and no file outside the study's own is touched.
"""
